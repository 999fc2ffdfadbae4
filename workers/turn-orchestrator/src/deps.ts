// What every part of the orchestrator is given: the bus, time, its settings, and small questions to the catalogue.
import { BusError, type Clock, type Iii, type Logger, type Timer } from "@iii/sdk";
import { z } from "zod";
import type { TurnStore } from "./journal/store.ts";
import type { Transcript } from "./journal/transcript.ts";
import { CallPolicy, DEFAULT_POLICY } from "./machine/record.ts";

export const Config = z.object({
  max_turns: z.int().positive().default(50),
  /** How long a parked call waits for a person; 0 = for ever. */
  approval_timeout_ms: z
    .int()
    .nonnegative()
    .default(30 * 60_000),
  model_timeout_ms: z.int().positive().default(300_000),
  policy_timeout_ms: z.int().positive().default(5_000),
  /** After its own start, and for calls that were parked: how long a function that is not served yet is waited for. */
  startup_grace_ms: z.int().nonnegative().default(10_000),
  sweep_interval_ms: z.int().positive().default(15_000),
  /** How often a step may fail before its turn is ended as failed. */
  max_step_failures: z.int().positive().default(8),
  /** `auto`: the session tree when it is served, decided once per session. */
  transcript: z.enum(["auto", "tree", "own"]).default("auto"),
});
export type Config = z.output<typeof Config>;

export interface Deps {
  readonly iii: Iii;
  readonly clock: Clock;
  readonly log: Logger;
  readonly config: Config;
  readonly store: TurnStore;
  readonly transcripts: { readonly tree: Transcript; readonly own: Transcript };
  /** When this process began to serve, by `clock`. */
  readonly started_at: number;
  /** Marks a place where a test may let the process die. A process that dies there does not come back from it. */
  point(name: string): void | Promise<void>;
}

const Info = z.object({ function_id: z.string(), metadata: z.unknown().optional() });
const NOT_THERE = new Set(["function_not_found", "NOT_FOUND", "not_found"]);

export function isNotServed(thrown: unknown): boolean {
  return thrown instanceof BusError && thrown.code === "function_not_found";
}

/** What the catalogue knows about a function; undefined when nobody serves it now. */
export async function functionInfo(iii: Iii, function_id: string): Promise<{ metadata: unknown } | undefined> {
  try {
    const info = Info.safeParse(await iii.trigger("engine::functions::info", { function_id }));
    return info.success ? { metadata: info.data.metadata } : undefined;
  } catch (thrown) {
    if (thrown instanceof BusError && NOT_THERE.has(thrown.code)) return undefined;
    throw thrown;
  }
}

const Infos = z.object({ functions: z.array(z.object({ function_id: z.string(), error: z.string().optional() })) });

/** Which of these functions somebody serves now. */
export async function servedNow(iii: Iii, function_ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { functions } = Infos.parse(await iii.trigger("engine::functions::info", { function_ids }));
  return new Set(functions.filter((row) => row.error === undefined).map((row) => row.function_id));
}

const Declared = CallPolicy.partial();

/** A function's declaration about being run again. What it does not say, or says wrongly, is the careful default. */
export function policyFrom(metadata: unknown): CallPolicy {
  const parsed = Declared.safeParse(metadata ?? {});
  if (!parsed.success) return DEFAULT_POLICY;
  const { effect, parallel, probe, timeout_ms } = parsed.data;
  return {
    effect: effect ?? DEFAULT_POLICY.effect,
    parallel: parallel ?? DEFAULT_POLICY.parallel,
    timeout_ms: timeout_ms ?? DEFAULT_POLICY.timeout_ms,
    ...(probe === undefined ? {} : { probe }),
  };
}

/** Resolves after `ms`, or at once when `signal` is aborted. Never rejects. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let timer: Timer | undefined;
    const done = (): void => {
      timer?.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    if (signal?.aborted) return resolve();
    signal?.addEventListener("abort", done, { once: true });
    timer = clock.setTimer(done, ms);
  });
}

/** What `work` comes to, or `late()` when it takes longer than `ms`. */
export function within<T>(clock: Clock, ms: number, work: Promise<T>, late: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(() => resolve(late()), ms);
    work.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** Resolves when `signal` is aborted, also when it already is. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

const POLL_MS = 100;

/** Waits until somebody serves `function_id`. False: not within `budget_ms`, or `signal` was aborted. */
export async function waitServed(deps: Deps, function_id: string, budget_ms: number, signal: AbortSignal): Promise<boolean> {
  const until = deps.clock.now() + budget_ms;
  for (;;) {
    if ((await functionInfo(deps.iii, function_id)) !== undefined) return true;
    if (signal.aborted || deps.clock.now() >= until) return false;
    await pause(deps.clock, POLL_MS, signal);
  }
}

/** How long a function that is not served may still be waited for: workers of one stack do not all come up at once. */
export function graceLeft(deps: Deps): number {
  return Math.max(0, deps.started_at + deps.config.startup_grace_ms - deps.clock.now());
}
