// config.yaml: its schema, its defaults and how it is read.
export type { EntryProblem, Fault, LoadOptions, LoadResult } from "./config/load.ts";
export { formatFault, loadConfig, parseConfig } from "./config/load.ts";
export { defaultEngineConfig, EngineConfig, Limits, QueueConfig, StackConfig, WorkerEntry } from "./config/schema.ts";
