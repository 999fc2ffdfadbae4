export { createMemoryStore, type MemoryStore } from "./memory.ts";
export type { Row, Store, StoreStats, Write } from "./port.ts";
export { createSqliteStore } from "./sqlite.ts";
