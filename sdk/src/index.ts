// What a worker author imports. Node and browser safe: the process shell is `@iii/sdk/run`, telemetry `@iii/sdk/trace`.
export * from "./client/ambient.ts";
export * from "./client/baggage.ts";
export * from "./client/channel-port.ts";
export { connect } from "./client/connect.ts";
export * from "./client/iii.ts";
export * from "./client/options.ts";
export * from "./client/spans.ts";
export * from "./errors.ts";
export * from "./failpoint.ts";
export * from "./function.ts";
export * from "./log-port.ts";
export * from "./ports.ts";
export * from "./protocol/ids.ts";
export * from "./secrets.ts";
export * from "./system.ts";
export { LightSpans, type LightSpansOptions } from "./telemetry/light.ts";
export * from "./telemetry/traceparent.ts";
export * from "./worker.ts";
