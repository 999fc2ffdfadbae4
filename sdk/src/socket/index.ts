export * from "./frame-writer.ts";
