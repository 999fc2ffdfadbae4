export * from "./codec.ts";
export * from "./encode.ts";
export * from "./envelope.ts";
export * from "./frames.ts";
export * from "./heads.ts";
export * from "./hot.ts";
export * from "./ids.ts";
export * from "./quick.ts";
