// What tests of workers and of the engine import.
export { createMemoryStore, type MemoryStore } from "../storage/memory.ts";
export { linkedDialer } from "../transport/linked.ts";
export { type TestBus, type TestBusOptions, testBus, type WorkerSpec } from "./bus.ts";
