// The contracts of the engine's built-in workers, for everyone who calls them. Schemas and definitions only.

export * from "./builtin/catalogue/contract.ts";
export * from "./builtin/channel/contract.ts";
export * from "./builtin/observability/contract.ts";
export * from "./builtin/pubsub/contract.ts";
export * from "./builtin/queue/contract.ts";
export * from "./builtin/state/contract.ts";
export * from "./builtin/stream/contract.ts";
export * from "./builtin/supervisor/contract.ts";
