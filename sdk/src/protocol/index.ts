export * from "./encode.ts";
export * from "./envelope.ts";
export * from "./frames.ts";
export * from "./hot.ts";
export * from "./ids.ts";
