export * from "./frames.ts";
export * from "./ids.ts";
