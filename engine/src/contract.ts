// The contracts of the engine's built-in workers, for everyone who calls them: schemas, definitions, and the one reader of state rows.

export * from "./builtin/catalogue/contract.ts";
export * from "./builtin/channel/contract.ts";
export * from "./builtin/observability/contract.ts";
export * from "./builtin/pubsub/contract.ts";
export * from "./builtin/queue/contract.ts";
export * from "./builtin/state/contract.ts";
export { type RowList, type SeenRow, type StateRows, type StoredRow, stateRows, type UnreadableRow } from "./builtin/state/rows.ts";
export * from "./builtin/stream/contract.ts";
export * from "./builtin/supervisor/contract.ts";
