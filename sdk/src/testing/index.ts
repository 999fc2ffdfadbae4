// What tests share: a clock they drive, chance that repeats, and a scripted other end.
export * from "./clock.ts";
export * from "./peer.ts";
export * from "./random.ts";
