// What a provider worker imports.
export * from "./define-provider.ts";
export * from "./failures.ts";
export type { Opened, Transport } from "./http.ts";
export * from "./openai-request.ts";
export * from "./openai-wire.ts";
export * from "./pairing.ts";
export * from "./result-text.ts";
export * from "./spec.ts";
export * from "./thinking.ts";
