// One worker as the supervisor keeps it, and the words for its state.
import { BusError, type Timer } from "@iii/sdk";
import type { WorkerSource, WorkerState } from "./contract.ts";
import type { Keeper } from "./keeper.ts";
import type { WorkerPlan } from "./port.ts";

export interface Entry {
  plan: WorkerPlan;
  wanted: boolean;
  keeper: Keeper | undefined;
  /** Failed starts inside the host, one after the other. */
  failures: number;
  reason: string | undefined;
  /** What was last logged of its failed starts: the same is not said again. */
  said: string | undefined;
  retry: Timer | undefined;
  /** Connections that were there before its latest start: their announcements are another process's. */
  before: ReadonlySet<string>;
  /** The host has been asked to stop it; everyone who asks meanwhile waits for the same answer. */
  stopping: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
}

export function newEntry(plan: WorkerPlan): Entry {
  const timers = { keeper: undefined, retry: undefined, stopping: undefined };
  return { plan, wanted: true, failures: 0, reason: undefined, said: undefined, before: new Set(), ...timers };
}

export function planFault(faults: readonly string[]): BusError {
  return new BusError("config_invalid", `config.yaml was not applied:\n${faults.join("\n")}`, { details: { faults } });
}

export function reasonFor(state: WorkerState, reason: string | undefined, source: WorkerSource): string | null {
  if (state === "ready" || state === "stopped") return null;
  if (state === "waiting") return "external: not connected yet";
  if (reason !== undefined) return reason;
  return source === "bundled" ? "starting" : "its process runs, but has not announced itself on the bus";
}
