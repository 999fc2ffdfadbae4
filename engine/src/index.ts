// The engine as a library: assembled here, opened to the world by whoever starts it.
export { defaultBuiltins } from "./builtins.ts";
export type { EntryRights } from "./core/rights.ts";
export { createEngine, type Engine, type EngineDeps, type EngineOptions } from "./engine.ts";
export type { Binding, Builtin, BuiltinCall, Caller, EngineHost, EngineInvocation, TriggerTypeSpec } from "./ports/host.ts";
export type { Row, Store, StoreStats, Write } from "./ports/store.ts";
export { createMemoryStore, type MemoryStore } from "./storage/memory.ts";
export { openStore, storePlace } from "./storage/open.ts";
export { linkedDialer } from "./transport/linked.ts";
export { type AttachOptions, attachBus, type UpgradeOptions, upgradeHandler } from "./transport/ws.ts";
