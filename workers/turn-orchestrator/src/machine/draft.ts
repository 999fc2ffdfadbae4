// A step in the making: the record as it becomes, and what is to be written beside it. Used by the machine only; pure.
import type { AgentEvent, TurnState } from "@iii/contracts";
import { type TurnCall, type TurnRecord, viewOf } from "./record.ts";

/** What one commit writes beside the record. */
export type Out =
  | { type: "event"; seq: number; event: AgentEvent }
  | { type: "park"; call: TurnCall & { phase: "parked" } }
  | { type: "unpark"; call_id: string }
  | { type: "keep"; call_id: string; value: unknown }
  | { type: "forget_deltas"; prefix: string };

export interface Draft {
  record: TurnRecord;
  /** As readers last saw it. */
  before: TurnRecord;
  readonly outs: Out[];
  readonly now: number;
}

export function change(draft: Draft, fields: Partial<TurnRecord>): void {
  draft.record = { ...draft.record, ...fields, updated_at_ms: draft.now };
}

/** Numbers the event within its turn, so that writing it twice is writing it once. */
export function emit(draft: Draft, event: AgentEvent): void {
  const seq = draft.record.event_seq;
  draft.outs.push({ type: "event", seq, event });
  draft.record = { ...draft.record, event_seq: seq + 1 };
}

function tell(draft: Draft): void {
  const old_value = viewOf(draft.before);
  emit(draft, { type: "turn_state_changed", event_type: "state:updated", new_value: viewOf(draft.record), old_value });
  draft.before = draft.record;
}

/** Moves to a state and tells readers; being there already is nothing. */
export function enter(draft: Draft, state: TurnState): void {
  if (draft.record.state === state) return;
  change(draft, { state });
  tell(draft);
}

/** Puts a call in the place of the one with its id. */
export function retake(draft: Draft, call: TurnCall): void {
  change(draft, { calls: draft.record.calls.map((old) => (old.id === call.id ? call : old)) });
}

function parkedIds(record: TurnRecord): string {
  return record.calls.flatMap((call) => (call.phase === "parked" ? [call.id] : [])).join(" ");
}

/** Tells readers when the set of waiting calls changed and no change of state has told them. */
export function announce(draft: Draft): void {
  if (parkedIds(draft.before) !== parkedIds(draft.record)) tell(draft);
}
