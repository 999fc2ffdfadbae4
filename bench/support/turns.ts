// Samples of turns, in the stack and beside it.
import type { Stack } from "../../harness/e2e/support/stack.ts";
import type { Agent, Model } from "./agent.ts";
import { cpuOf } from "./booted.ts";
import { latencies, median, quantile } from "./load.ts";
import { cpuMs, type Role } from "./processes.ts";

export interface Sample {
  readonly p50: number;
  readonly p99: number;
  readonly per_second: number;
  readonly cpu: number;
}

function sampleOf(seen: readonly number[], cpu: number): Sample {
  const total = seen.reduce((sum, us) => sum + us);
  return { p50: median(seen) / 1_000, p99: quantile(seen, 0.99) / 1_000, per_second: (seen.length * 1e6) / total, cpu: cpu / seen.length };
}

/** The turns of a role that makes them by itself, in its own process. */
export async function roleTurns(role: Role): Promise<Sample> {
  const before = cpuMs(role.pid);
  const seen = await role.ask<number[]>("turns");
  return sampleOf(seen, cpuMs(role.pid) - before);
}

/** Turns of a running stack; its processes' CPU is all of theirs. */
export async function stackTurns(stack: Stack, agent: Agent, model: Model, ms: number): Promise<Sample> {
  const before = cpuOf(stack);
  let last = "";
  const seen = await latencies(
    async () => {
      last = await agent.turn(model);
    },
    ms,
    10,
  );
  const sample = sampleOf(seen, cpuOf(stack) - before);
  await agent.check(last);
  return sample;
}

export const mid = (samples: readonly Sample[], key: keyof Sample): number => median(samples.map((one) => one[key]));
export const best = (samples: readonly Sample[], key: keyof Sample): number => Math.min(...samples.map((one) => one[key]));
