// The real clock and the real random numbers. Works in Node and in browsers.
import type { Clock, Random } from "./ports.ts";

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimer(callback, delayMs) {
    // setTimeout wraps above 2^31-1 ms and would fire at once.
    const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), 2_147_483_647));
    return { cancel: () => clearTimeout(handle) };
  },
};

export const systemRandom: Random = {
  uuid: () => globalThis.crypto.randomUUID(),
  hex(bytes) {
    const raw = globalThis.crypto.getRandomValues(new Uint8Array(bytes));
    return Array.from(raw, (byte) => byte.toString(16).padStart(2, "0")).join("");
  },
  float: () => Math.random(),
};
