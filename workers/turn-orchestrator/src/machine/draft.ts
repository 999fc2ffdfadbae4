// A step in the making: the record as it becomes, and what is to be written beside it. Used by the machine only; pure.
import type { AgentEvent, TurnState } from "@iii/contracts";
import { bytesOf } from "@iii/contracts/storable";
import type { TranscriptEntry } from "@iii/worker-session/contract";
import { leftAt, type TurnCall, type TurnRecord, viewOf } from "./record.ts";

/** What one commit writes beside the record. */
export type Out =
  | { type: "event"; seq: number; event: AgentEvent }
  | { type: "park"; call: TurnCall & { phase: "parked" } }
  | { type: "unpark"; call_id: string }
  | { type: "keep"; call_id: string; value: unknown }
  /** One entry for the transcript, as the pending row `n`; `dropped` are rows that the transcript has by now. */
  | { type: "entry"; n: number; entry: TranscriptEntry }
  | { type: "dropped"; first: number; next: number }
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

/** Puts an entry on its way to the transcript. */
export function send(draft: Draft, entry: TranscriptEntry): void {
  const { first, next, bytes } = draft.record.pending;
  draft.outs.push({ type: "entry", n: next, entry });
  change(draft, { pending: { first, next: next + 1, bytes: bytes + bytesOf(entry) } });
}

function tell(draft: Draft): void {
  const left = leftAt(draft.now);
  const values = { new_value: viewOf(draft.record, left), old_value: viewOf(draft.before, left) };
  emit(draft, { type: "turn_state_changed", event_type: "state:updated", ...values });
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
