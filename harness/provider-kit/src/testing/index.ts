// For the tests of providers.
export * from "./conformance.ts";
export * from "./on-bus.ts";
export * from "./play.ts";
export * from "./property.ts";
export * from "./servers.ts";
