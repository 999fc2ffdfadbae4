export * from "./frame-writer.ts";
export * from "./masked-writer.ts";
