// The contracts of the engine's built-in workers, for everyone who calls them: schemas, definitions, and the one reader of state rows.

export * from "./builtin/catalogue/contract.ts";
export * from "./builtin/channel/contract.ts";
export * from "./builtin/observability/contract.ts";
export * from "./builtin/pubsub/contract.ts";
export * from "./builtin/storage/queue/contract.ts";
export * from "./builtin/storage/state/contract.ts";
export { type RowList, type SeenRow, type StateRows, type StoredRow, stateRows, type UnreadableRow } from "./builtin/storage/state/rows.ts";
export * from "./builtin/storage/stream/contract.ts";
export * from "./builtin/supervisor/contract.ts";
export { isClosedToAgents } from "./core/access.ts";
export { ACCESS, type AccessTable, type OwnerRow } from "./core/access-table.ts";
