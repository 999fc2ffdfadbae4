// What a turn is in storage: the record, its calls, and the view that others see. No I/O; a stored record that does not parse is an error.
import { AgentMessage, AssistantMessage, FunctionResult, ThinkingLevel, TurnState, type TurnStateView, Usage } from "@iii/contracts";
import { BusError } from "@iii/sdk";
import { z } from "zod";
import { RunMode } from "../contract.ts";

/** How a called function may be run again and for how long, as its registration said when the call was judged. */
export const CallPolicy = z.object({
  effect: z.enum(["none", "idempotent", "at_most_once"]),
  parallel: z.boolean(),
  probe: z.string().optional(),
  timeout_ms: z.number().positive(),
});
export type CallPolicy = z.infer<typeof CallPolicy>;

export const DEFAULT_POLICY: CallPolicy = { effect: "at_most_once", parallel: false, timeout_ms: 120_000 };

const base = {
  id: z.string(),
  function_id: z.string(),
  args: z.unknown(),
  /** Said to the model beside the result: what was corrected in its call. */
  note: z.string().optional(),
};
const held = { args_sha256: z.string(), rule_id: z.string().optional(), requested_at: z.number(), expires_at: z.number().nullable() };
export const HumanDecision = z.object({
  decision: z.enum(["allow", "deny", "aborted"]),
  reason: z.string().nullable(),
  by: z.string(),
  decided_at: z.number(),
});
export type HumanDecision = z.infer<typeof HumanDecision>;

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
    decision: HumanDecision.optional(),
  }),
  z.object({ ...base, phase: z.literal("parked"), policy: CallPolicy, ...held }),
  z.object({ ...base, phase: z.literal("released"), policy: CallPolicy, ...held, decision: HumanDecision }),
  z.object({
    ...base,
    phase: z.enum(["started", "probing"]),
    policy: CallPolicy,
    attempt: z.int().positive(),
    started_at: z.number(),
    args_sha256: z.string().optional(),
    decision: HumanDecision.optional(),
  }),
  z.object({
    ...base,
    phase: z.literal("done"),
    result: FunctionResult,
    is_error: z.boolean(),
    duration_ms: z.number(),
    decision: HumanDecision.optional(),
  }),
]);
export type TurnCall = z.infer<typeof TurnCall>;

export const PendingEntry = z.object({ entry_id: z.string(), message: AgentMessage });
export type PendingEntry = z.infer<typeof PendingEntry>;

export const Ending = z.object({
  state: z.enum(["stopped", "failed"]),
  stop_reason: z.string(),
  error: z.object({ kind: z.string(), message: z.string() }).optional(),
});
export type Ending = z.infer<typeof Ending>;

export const RECORD_VERSION = 1;

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
  /** Failures of the current model call that were tried again. */
  retries: z.int().nonnegative(),
  last_assistant: AssistantMessage.nullable(),
  /** Whether `turn_end` of the current round is out. */
  turn_end_emitted: z.boolean(),
  calls: z.array(TurnCall),
  /** Transcript entries that the transcript has not confirmed yet, oldest first. */
  pending_entries: z.array(PendingEntry),
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
  error: z.object({ kind: z.string(), message: z.string() }).optional(),
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

/** A run that waits in line: everything that its first commit will write. */
export const QueuedRun = z.object({ record: TurnRecord, request: RunRequest });
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
  queued: (sid: string, n: number) => `${sid}/queue/${n}`,
  message: (sid: string, id: string) => `${sid}/msg/${id}`,
  entry: (sid: string, id: string) => `${sid}/entry/${id}`,
};

export function isTerminal(record: TurnRecord): boolean {
  return record.state === "stopped" || record.state === "failed";
}

/** @throws BusError `store_corrupt` naming the key: a stored value is never repaired by guessing. */
export function parseStored<S extends z.ZodType>(schema: S, value: unknown, key: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new BusError("store_corrupt", `${key} holds something else than was stored: ${issue?.path.join(".")} ${issue?.message}`);
}

function waiting(record: TurnRecord): TurnStateView["awaiting_approval"] {
  return record.calls.flatMap((call) => {
    if (call.phase !== "parked") return [];
    const { id, function_id, args, args_sha256, rule_id, requested_at, expires_at } = call;
    const rule = rule_id === undefined ? {} : { rule_id };
    return [{ function_call_id: id, function_id, args, args_sha256, requested_at, expires_at, ...rule }];
  });
}

/** The record as everyone else may see it. */
export function viewOf(record: TurnRecord): TurnStateView {
  const awaiting = waiting(record) ?? [];
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
    ...(record.error === undefined ? {} : { error: record.error }),
    ...(record.stop_reason === undefined ? {} : { stop_reason: record.stop_reason }),
    ...(record.traceparent === undefined ? {} : { traceparent: record.traceparent }),
  };
}
