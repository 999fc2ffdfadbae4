// What a turn is in storage: the record, its calls, and the view that others see. Pure.
import {
  AssistantMessage,
  DecisionRecord,
  FunctionResult,
  ParkedCall,
  ThinkingLevel,
  TurnError,
  TurnState,
  type TurnStateView,
  Usage,
} from "@iii/contracts";
import { EffectPolicy } from "@iii/sdk";
import { TranscriptEntry } from "@iii/worker-session/contract";
import { z } from "zod";
import { RunMode } from "../contract.ts";

/** How a called function may be run again and for how long, as its registration said when the call was judged. */
export const CallPolicy = EffectPolicy.required({ timeout_ms: true });
export type CallPolicy = z.infer<typeof CallPolicy>;

export const DEFAULT_POLICY: CallPolicy = { effect: "at_most_once", parallel: false, timeout_ms: 120_000 };

const base = {
  id: z.string(),
  function_id: z.string(),
  args: z.unknown(),
  /** Said to the model beside the result: what was corrected in its call. */
  note: z.string().optional(),
};
const held = ParkedCall.pick({ args_sha256: true, rule_id: true, requested_at: true, expires_at: true }).shape;

/**
 * One call of a batch. `planned`: not judged. `ready`: may start. `parked`: waits for a human. `released`: a human allowed it, deny
 * rules are to be asked again. `started`: journalled before it left; `probing` when its fate is being asked for. `done`: has its one result.
 */
export const TurnCall = z.discriminatedUnion("phase", [
  z.object({ ...base, phase: z.literal("planned") }),
  z.object({
    ...base,
    phase: z.literal("ready"),
    policy: CallPolicy,
    args_sha256: z.string().optional(),
    decision: DecisionRecord.optional(),
  }),
  z.object({ ...base, phase: z.literal("parked"), policy: CallPolicy, ...held }),
  z.object({ ...base, phase: z.literal("released"), policy: CallPolicy, ...held, decision: DecisionRecord }),
  z.object({
    ...base,
    phase: z.enum(["started", "probing"]),
    policy: CallPolicy,
    attempt: z.int().positive(),
    started_at: z.number(),
    args_sha256: z.string().optional(),
    decision: DecisionRecord.optional(),
  }),
  z.object({
    ...base,
    phase: z.literal("done"),
    result: FunctionResult,
    is_error: z.boolean(),
    duration_ms: z.number(),
    decision: DecisionRecord.optional(),
  }),
]);
export type TurnCall = z.infer<typeof TurnCall>;

export const Ending = z.object({
  state: z.enum(["stopped", "failed"]),
  stop_reason: z.string(),
  error: TurnError.optional(),
});
export type Ending = z.infer<typeof Ending>;

export const RECORD_VERSION = 2;

/** More entries than can gather while a transcript is away: a record that speaks of more is not one. */
const MAX_PENDING = 100_000;

/**
 * The transcript entries that the session's transcript has not confirmed yet: rows `<sid>/pending/<n>` for `first` <= n < `next`, of
 * `bytes` together. The numbers rise over the life of the session, so that what one turn leaves is the next one's to send.
 */
export const PendingRows = z
  .object({ first: z.int().positive(), next: z.int().positive(), bytes: z.int().nonnegative() })
  .refine(({ first, next }) => first <= next && next - first <= MAX_PENDING, "must name a few rows");
export type PendingRows = z.infer<typeof PendingRows>;
export const NOTHING_PENDING: PendingRows = { first: 1, next: 1, bytes: 0 };

const LostEntry = z.object({ entry_id: z.string(), code: z.string(), message: z.string() });
/** An entry that the transcript refused for good. */
export type LostEntry = z.infer<typeof LostEntry>;

export const TurnRecord = z.object({
  version: z.literal(RECORD_VERSION),
  session_id: z.string(),
  turn_id: z.string(),
  message_id: z.string(),
  state: TurnState,
  /** Model calls begun; an attempt that is repeated does not count again. */
  turn_count: z.int().nonnegative(),
  max_turns: z.int().positive(),
  /** Which try of the current model call; a higher one tells readers to start the message again. */
  attempt: z.int().nonnegative(),
  last_assistant: AssistantMessage.nullable(),
  /** Whether `turn_end` of the current round is out. */
  turn_end_emitted: z.boolean(),
  calls: z.array(TurnCall),
  pending: PendingRows,
  lost_entries: z.array(LostEntry).optional(),
  /** Set once the turn has decided to end; it ends when its entries are stored. */
  ending: Ending.nullable(),
  abort: z.object({ reason: z.string() }).nullable(),
  event_seq: z.int().nonnegative(),
  step_failures: z.int().nonnegative(),
  usage: Usage,
  /** Where the session's transcript lives; decided once per session. */
  transcript: z.enum(["tree", "own"]),
  traceparent: z.string().optional(),
  baggage: z.string().optional(),
  error: TurnError.optional(),
  stop_reason: z.string().optional(),
  started_at_ms: z.number(),
  updated_at_ms: z.number(),
});
export type TurnRecord = z.infer<typeof TurnRecord>;

/** What the run asked for, with the prompt that was built for it. Written once, when the run is accepted. */
export const RunRequest = z.object({
  turn_id: z.string(),
  provider: z.string(),
  model: z.string(),
  mode: RunMode.nullable(),
  system_prompt: z.string(),
  thinking_level: ThinkingLevel.optional(),
  max_output_tokens: z.int().positive().optional(),
});
export type RunRequest = z.infer<typeof RunRequest>;

/** A run with its new messages: everything that its first commit will write. As a row, it waits in line. */
export const QueuedRun = z.object({ record: TurnRecord, request: RunRequest, entries: z.array(TranscriptEntry) });
export type QueuedRun = z.infer<typeof QueuedRun>;

/** The line of a session: messages `head` (inclusive) to `tail` (exclusive) wait. Rewritten by every commit that ends a turn. */
export const QueuePointer = z.object({ head: z.int().positive(), tail: z.int().positive() });
export type QueuePointer = z.infer<typeof QueuePointer>;
export const EMPTY_POINTER: QueuePointer = { head: 1, tail: 1 };

export const AbortFlag = z.object({ turn_id: z.string(), reason: z.string(), at: z.number() });

export const SESSION_SCOPE = "session";
export const keys = {
  record: (sid: string) => `${sid}/turn_state`,
  request: (sid: string) => `${sid}/run_request`,
  abort: (sid: string) => `${sid}/abort`,
  pointer: (sid: string) => `${sid}/queue`,
  queuedBelow: (sid: string) => `${sid}/queue/`,
  queued: (sid: string, n: number) => `${sid}/queue/${n}`,
  pendingBelow: (sid: string) => `${sid}/pending/`,
  pending: (sid: string, n: number) => `${sid}/pending/${n}`,
  message: (sid: string, id: string) => `${sid}/msg/${id}`,
  entry: (sid: string, id: string) => `${sid}/entry/${id}`,
};

export function isTerminal(record: TurnRecord): boolean {
  return record.state === "stopped" || record.state === "failed";
}

function waiting(record: TurnRecord, left: Left): NonNullable<TurnStateView["awaiting_approval"]> {
  return record.calls.flatMap((call) => {
    if (call.phase !== "parked") return [];
    const { id, function_id, args, args_sha256, rule_id, requested_at, expires_at } = call;
    const rule = rule_id === undefined ? {} : { rule_id };
    return [{ function_call_id: id, function_id, args, args_sha256, requested_at, expires_at, remaining_ms: left(call), ...rule }];
  });
}

/** How long a parked call can still be decided, in ms; null = for ever. */
export type Left = (call: TurnCall & { phase: "parked" }) => number | null;

/** By the stored dates alone, for a moment of the same clock: never less than nothing, never more than was given. */
export const leftAt =
  (now: number): Left =>
  ({ requested_at, expires_at }) =>
    expires_at === null ? null : Math.min(expires_at - requested_at, Math.max(0, expires_at - now));

/** The record as everyone else may see it. */
export function viewOf(record: TurnRecord, left: Left): TurnStateView {
  const awaiting = waiting(record, left);
  return {
    session_id: record.session_id,
    turn_id: record.turn_id,
    message_id: record.message_id,
    state: record.state,
    turn_count: record.turn_count,
    max_turns: record.max_turns,
    started_at_ms: record.started_at_ms,
    updated_at_ms: record.updated_at_ms,
    ...(awaiting.length === 0 ? {} : { awaiting_approval: awaiting }),
    ...(record.lost_entries === undefined ? {} : { lost_entries: record.lost_entries }),
    ...(record.error === undefined ? {} : { error: record.error }),
    ...(record.stop_reason === undefined ? {} : { stop_reason: record.stop_reason }),
    ...(record.traceparent === undefined ? {} : { traceparent: record.traceparent }),
  };
}
