// The door of this built-in.
export { observabilityBuiltin } from "./register.ts";
export { createTracer } from "./tracer.ts";
