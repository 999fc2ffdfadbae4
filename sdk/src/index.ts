// What a worker author imports. Node and browser safe: the process shell is `@iii/sdk/run`, telemetry `@iii/sdk/trace`.
export * from "./client/channel-port.ts";
export * from "./client/iii.ts";
export * from "./define.ts";
export * from "./errors.ts";
export * from "./failpoint.ts";
export * from "./log-port.ts";
export * from "./ports.ts";
export * from "./protocol/ids.ts";
export * from "./system.ts";
