// What tests share: a clock they drive, and chance that repeats.
export * from "./clock.ts";
export * from "./random.ts";
