// What a provider worker imports.
export * from "./define-provider.ts";
export type { Opened, Transport } from "./exchange/http.ts";
export * from "./failures.ts";
export * from "./openai/request.ts";
export * from "./openai/wire.ts";
export * from "./request/pairing.ts";
export * from "./request/result-text.ts";
export * from "./request/thinking.ts";
export * from "./spec.ts";
