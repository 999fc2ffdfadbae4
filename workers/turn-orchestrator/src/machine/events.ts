// What can happen to a turn, and what a record asks to be running. Every outcome names the effect it answers. Pure.
import type { AssistantMessage, DecisionRecord } from "@iii/contracts";
import type { Out } from "./draft.ts";
import type { PlannedCall } from "./plan.ts";
import { type CallPolicy, isTerminal, type LostEntry, type TurnCall, type TurnRecord } from "./record.ts";
import type { Settled } from "./results.ts";

export type Verdict =
  | { type: "allow"; policy: CallPolicy }
  | { type: "park"; policy: CallPolicy; args_sha256: string; rule_id?: string; expires_in_ms: number | null }
  | { type: "refuse"; settled: Settled };

export type Outcome =
  | { type: "result"; settled: Settled; whole?: unknown; duration_ms: number }
  /** The executor is gone and nobody knows whether the call happened. */
  | { type: "lost" };

export type TurnEvent =
  /** A delivery begins: whatever the record shows as running is not running any more. */
  | { type: "woken"; now: number }
  | {
      type: "generated";
      answers: string;
      now: number;
      message: AssistantMessage;
      calls: readonly PlannedCall[];
      /** Whether any of it was shown before it ended. */
      streamed: boolean;
      /** The provider's process went away before it said anything: nobody has tried again yet. */
      vanished: boolean;
    }
  | { type: "judged"; answers: string; now: number; verdict: Verdict }
  | { type: "rechecked"; answers: string; now: number; refused: Settled | null }
  | { type: "returned"; answers: string; now: number; outcome: Outcome }
  | { type: "probed"; answers: string; now: number; answer: "not_run" | "unknown" | Settled }
  | { type: "decided"; now: number; call_id: string; decision: DecisionRecord | "expired" | "args_changed" | "unreadable" }
  /** The transcript has every pending entry before row `next`, but for those that it refused for good. `bytes`: of all of them. */
  | { type: "appended"; now: number; next: number; bytes: number; lost: readonly LostEntry[] }
  | { type: "aborted"; now: number; reason: string }
  /** A step could not be done and will not be tried again. `give_up`: not even the transcript can be reached. */
  | { type: "broken"; now: number; kind: string; message: string; give_up: boolean };

export type Effect =
  | { type: "generate"; key: string }
  | { type: "judge" | "recheck" | "invoke" | "probe"; key: string; call: TurnCall }
  /** Send the pending entries before row `next`. */
  | { type: "append"; key: "append"; next: number };

export interface Step {
  readonly record: TurnRecord;
  readonly outs: readonly Out[];
}

export const effectKey = {
  generate: (record: TurnRecord) => `generate:${record.turn_count}.${record.attempt}`,
  judge: (call: TurnCall) => `judge:${call.id}`,
  recheck: (call: TurnCall) => `recheck:${call.id}`,
  invoke: (call: TurnCall & { attempt: number }) => `invoke:${call.id}.${call.attempt}`,
  probe: (call: TurnCall & { attempt: number }) => `probe:${call.id}.${call.attempt}`,
};

/** Effects that may leave only when the record that shows them is durable. The others change nothing and may run at any time. */
export function needsJournal(effect: Effect): boolean {
  return effect.type === "generate" || effect.type === "invoke" || effect.type === "append";
}

/** The effect that a call waits for, if it waits for one. */
export function callEffect(call: TurnCall): Effect[] {
  switch (call.phase) {
    case "planned":
      return [{ type: "judge", key: effectKey.judge(call), call }];
    case "released":
      return [{ type: "recheck", key: effectKey.recheck(call), call }];
    case "started":
      return [{ type: "invoke", key: effectKey.invoke(call), call }];
    case "probing":
      return [{ type: "probe", key: effectKey.probe(call), call }];
    case "ready":
    case "parked":
    case "done":
      return [];
  }
}

/** So many entries, or bytes of them, are sent without waiting for the turn to park or end. */
const BATCH_ENTRIES = 16;
const BATCH_BYTES = 64 * 1024;

/**
 * Whether entries are to leave now: when the turn parks, when there are many, and before the end. The first of a session leave at once,
 * so that the session is listed while its first turn runs. Otherwise they wait, so that a short turn sends one batch.
 */
function mustSend(record: TurnRecord): boolean {
  const { first, next, bytes } = record.pending;
  if (first === next) return false;
  if (first === 1 || record.ending !== null || record.state === "function_awaiting_approval") return true;
  return next - first >= BATCH_ENTRIES || bytes >= BATCH_BYTES;
}

/** What must be running for this record. Entries wait while calls are being judged, so that both share one commit. */
export function due(record: TurnRecord): Effect[] {
  if (isTerminal(record)) return [];
  const effects = record.calls.flatMap(callEffect);
  if (record.state === "assistant_streaming" && record.ending === null) effects.push({ type: "generate", key: effectKey.generate(record) });
  const judging = record.calls.some((call) => call.phase === "planned" || call.phase === "released");
  if (mustSend(record) && !judging) effects.push({ type: "append", key: "append", next: record.pending.next });
  return effects;
}
