// The door of this built-in.
export { createObservability, type Observability } from "./register.ts";
export { createTracer } from "./tracer.ts";
