// Chance that repeats: the same seed gives the same ids.
import type { Random } from "../ports.ts";

/** Small counter-based generator (mulberry32); good enough for ids in tests. */
export function seededRandom(seed = 1): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const hex = (bytes: number): string =>
    Array.from({ length: bytes }, () =>
      Math.floor(next() * 256)
        .toString(16)
        .padStart(2, "0"),
    ).join("");
  return {
    float: next,
    hex,
    uuid() {
      const raw = hex(16);
      const variant = "89ab"[Math.floor(next() * 4)] ?? "8";
      return `${raw.slice(0, 8)}-${raw.slice(8, 12)}-4${raw.slice(13, 16)}-${variant}${raw.slice(17, 20)}-${raw.slice(20)}`;
    },
  };
}
