// What a provider worker imports.
export type { Words } from "./answer/rule.ts";
export * from "./define-provider.ts";
export type { Opened, Transport } from "./exchange/http.ts";
export * from "./failures.ts";
export * from "./openai/index.ts";
export * from "./read.ts";
export type { HealedRequest } from "./request/doctor.ts";
export { endpointUrl } from "./request/endpoint.ts";
export { COMMON_IMAGES, type Takes } from "./request/media.ts";
export type { AssistantTurn, Turn } from "./request/pairing.ts";
export * from "./request/result-text.ts";
export * from "./request/thinking.ts";
export * from "./spec.ts";
