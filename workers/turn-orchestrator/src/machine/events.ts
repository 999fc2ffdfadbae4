// What can happen to a turn, and what a record asks to be running. Every outcome names the effect it answers. Pure.
import type { AssistantMessage } from "@iii/contracts";
import type { Out } from "./draft.ts";
import { type CallPolicy, type HumanDecision, isTerminal, type PendingEntry, type TurnCall, type TurnRecord } from "./record.ts";
import type { Settled } from "./results.ts";

export type Verdict =
  | { type: "allow"; policy: CallPolicy }
  | { type: "park"; policy: CallPolicy; args_sha256: string; rule_id?: string; expires_at: number | null }
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
      calls: TurnCall[];
      /** Whether any of it was shown before it ended. */
      streamed: boolean;
      retryable: boolean;
    }
  | { type: "judged"; answers: string; now: number; verdict: Verdict }
  | { type: "rechecked"; answers: string; now: number; refused: Settled | null }
  | { type: "returned"; answers: string; now: number; outcome: Outcome }
  | { type: "probed"; answers: string; now: number; answer: "not_run" | "unknown" | Settled }
  | { type: "decided"; now: number; call_id: string; decision: HumanDecision | "expired" | "args_changed" }
  | { type: "appended"; now: number; entry_ids: readonly string[] }
  | { type: "aborted"; now: number; reason: string }
  /** A step could not be done and will not be tried again. `give_up`: not even the transcript can be reached. */
  | { type: "broken"; now: number; kind: string; message: string; give_up: boolean };

export type Effect =
  | { type: "generate"; key: string }
  | { type: "judge" | "recheck" | "invoke" | "probe"; key: string; call: TurnCall }
  | { type: "append"; key: "append"; entries: readonly PendingEntry[] };

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

/** What must be running for this record. Entries wait while calls are being judged, so that both share one commit. */
export function due(record: TurnRecord): Effect[] {
  if (isTerminal(record)) return [];
  const effects = record.calls.flatMap(callEffect);
  if (record.state === "assistant_streaming" && record.ending === null) effects.push({ type: "generate", key: effectKey.generate(record) });
  const judging = record.calls.some((call) => call.phase === "planned" || call.phase === "released");
  if (record.pending_entries.length > 0 && !judging) effects.push({ type: "append", key: "append", entries: record.pending_entries });
  return effects;
}
