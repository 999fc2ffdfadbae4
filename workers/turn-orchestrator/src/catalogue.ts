// Small questions to the catalogue: what is served now, and how it may be called.
import { functionsInfo, functionsList } from "@iii/engine/contract";
import { BusError, EffectPolicy, type Iii, sleep } from "@iii/sdk";
import type { Deps } from "./deps.ts";
import { type CallPolicy, DEFAULT_POLICY } from "./machine/record.ts";

const NOT_THERE = new Set(["function_not_found", "NOT_FOUND", "not_found"]);
const POLL_MS = 100;
const Declared = EffectPolicy.partial();

export function isNotServed(thrown: unknown): boolean {
  return thrown instanceof BusError && thrown.code === "function_not_found";
}

/** What the catalogue knows about a function; undefined when nobody serves it now. */
export async function functionInfo(iii: Iii, function_id: string): Promise<{ metadata: unknown } | undefined> {
  try {
    const info = await iii.trigger(functionsInfo, { function_id });
    return "function_id" in info ? { metadata: info.metadata } : undefined;
  } catch (thrown) {
    if (thrown instanceof BusError && NOT_THERE.has(thrown.code)) return undefined;
    throw thrown;
  }
}

/** Which of these functions somebody serves now. */
export async function servedNow(iii: Iii, function_ids: readonly string[]): Promise<ReadonlySet<string>> {
  const info = await iii.trigger(functionsInfo, { function_ids: [...function_ids] });
  const rows = "functions" in info ? info.functions : [info];
  return new Set(rows.filter((row) => !("error" in row)).map((row) => row.function_id));
}

/** The ids that start with `prefix` and are served now. */
export async function idsBelow(iii: Iii, prefix: string): Promise<string[]> {
  return (await iii.trigger(functionsList, { prefix })).functions.map((row) => row.function_id);
}

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

/** Waits until somebody serves `function_id`. False: not within `budget_ms`, or `signal` was aborted. */
export async function waitServed(deps: Deps, function_id: string, budget_ms: number, signal?: AbortSignal): Promise<boolean> {
  const until = deps.clock.monotonic() + budget_ms;
  for (;;) {
    if ((await functionInfo(deps.iii, function_id)) !== undefined) return true;
    if (signal?.aborted === true || deps.clock.monotonic() >= until) return false;
    await sleep(deps.clock, POLL_MS, signal);
  }
}

/** How long a function that is not served may still be waited for: workers of one stack do not all come up at once. */
export function graceLeft(deps: Deps): number {
  return Math.max(0, deps.started_at + deps.config.startup_grace_ms - deps.clock.monotonic());
}
