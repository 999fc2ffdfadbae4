// config.yaml: its schema, its defaults and how it is read.
export type { EntryProblem, EntryView } from "./config/entries.ts";
export type { LoadOptions, LoadResult } from "./config/load.ts";
export { loadConfig, parseConfig } from "./config/load.ts";
export { type Fault, formatFault } from "./config/place.ts";
export { defaultEngineConfig, EngineConfig, Limits, QueueConfig, StackConfig, WorkerEntry } from "./config/schema.ts";
