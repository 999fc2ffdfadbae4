// For the tests of providers.
export * from "./conformance.ts";
export * from "./play.ts";
