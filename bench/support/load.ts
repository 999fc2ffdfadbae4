// Closed-loop load and its figures: one call after the other, or a fixed number in flight. Knows nothing of what it calls.
import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";

/** Makes the n-th call; rejects when the answer is not the one that belongs to it. */
export type Call = (n: number) => Promise<unknown>;

export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly count: number;
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

let counter = 0;

/** Latencies in µs of calls made one at a time, for `ms` and at least `least` calls. */
export async function latencies(call: Call, ms: number, least = 20): Promise<number[]> {
  const seen: number[] = [];
  const end = performance.now() + ms;
  for (let now = performance.now(); now < end || seen.length < least; ) {
    counter += 1;
    await call(counter);
    const then = performance.now();
    seen.push((then - now) * 1_000);
    now = then;
  }
  return seen;
}

export async function sequential(call: Call, ms: number, least = 20): Promise<Latency> {
  const seen = await latencies(call, ms, least);
  return { p50: median(seen), p99: quantile(seen, 0.99), count: seen.length };
}

export interface Rate {
  readonly per_second: number;
  readonly count: number;
}

/** Calls per second with `lanes` in flight for `ms`. Counts answered calls only. */
export async function inFlight(call: Call, lanes: number, ms: number): Promise<Rate> {
  const start = performance.now();
  let count = 0;
  const lane = async (): Promise<void> => {
    while (performance.now() - start < ms) {
      counter += 1;
      await call(counter);
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { per_second: count / ((performance.now() - start) / 1_000), count };
}

function busyShare(before: readonly number[], after: readonly number[]): number {
  const spent = after.map((value, index) => value - (before[index] ?? 0));
  const idle = (spent[3] ?? 0) + (spent[4] ?? 0);
  return (
    1 -
    idle /
      Math.max(
        1,
        spent.reduce((sum, value) => sum + value),
      )
  );
}

const cpuTimes = (): number[] => (readFileSync("/proc/stat", "utf8").split("\n")[0] ?? "").trim().split(/\s+/).slice(1, 9).map(Number);
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Waits, at most `ms`, until the machine does little else: other work would only add time to the sample. */
export async function quiet(ms = 1_500): Promise<void> {
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const before = cpuTimes();
    await pause(60);
    if (busyShare(before, cpuTimes()) < 0.25) return;
  }
}

/** `--rounds` and `--ms` of the command line. */
export function settings(rounds: number, ms: number): { rounds: number; ms: number } {
  const options = { rounds: { type: "string", default: String(rounds) }, ms: { type: "string", default: String(ms) } } as const;
  const { values } = parseArgs({ options });
  return { rounds: Number(values.rounds), ms: Number(values.ms) };
}

export const load = (): string =>
  loadavg()
    .map((value) => value.toFixed(1))
    .join(" ");

/** `forward`, then `backward`, then `forward` …: no variant always runs first. */
export async function inTurns<T>(rounds: number, variants: readonly T[], run: (variant: T) => Promise<void>): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const variant of round % 2 === 0 ? variants : variants.toReversed()) {
      await quiet();
      await run(variant);
    }
  }
}
