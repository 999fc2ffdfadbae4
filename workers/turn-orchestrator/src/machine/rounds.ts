// The rounds of a turn: a model call begins, its message is taken, a batch ends, the turn ends. Used by the machine only; pure.
import type { AssistantMessage, Usage } from "@iii/contracts";
import { closeBatch, closeOpenCalls, runs } from "./batch.ts";
import { change, type Draft, emit, enter, send } from "./draft.ts";
import type { TurnRecord } from "./record.ts";
import { errorResult, interrupted } from "./results.ts";

function addUsage(total: Usage, more: Usage): Usage {
  const sum: Usage = { ...total };
  for (const key of ["input", "output", "cache_read", "cache_write", "cost_usd"] as const) {
    const value = more[key];
    if (value !== undefined) sum[key] = (sum[key] ?? 0) + value;
  }
  return more.estimated === true ? { ...sum, estimated: true } : sum;
}

/** Makes a message the round's assistant message: to the transcript, to readers, and into the sum of usage. */
export function takeMessage(draft: Draft, message: AssistantMessage, streamed: boolean): void {
  const { record } = draft;
  const usage = addUsage(record.usage, message.usage ?? {});
  change(draft, { last_assistant: message, usage, turn_end_emitted: false });
  send(draft, { entry_id: `e_${record.turn_id}_${record.turn_count}`, message });
  const message_id = messageId(record);
  emit(draft, { type: "message_complete", message_id, attempt: record.attempt, message, body_streamed: streamed });
}

/** The id of the model message of the current round. */
export function messageId(record: TurnRecord): string {
  return `m_${record.turn_id}_${record.turn_count}`;
}

/** Ends the turn as failed: open calls get their one result, which says what is known of them, and a message says why. */
export function fail(draft: Draft, kind: string, message: string): void {
  const { record } = draft;
  if (record.ending?.state === "failed") return;
  closeOpenCalls(draft, (call) =>
    runs(call)
      ? interrupted(call.function_id)
      : errorResult("not_run", `not run: the turn failed: ${message}`, { function: call.function_id }),
  );
  if (draft.record.calls.length > 0) closeBatch(draft);
  synthesise(draft, "error", `The turn failed: ${message}`, { kind, message });
  change(draft, { ending: { state: "failed", stop_reason: "error", error: { kind, message } } });
}

/** A message in the model's place: why there is none of its own. */
export function synthesise(
  draft: Draft,
  stop_reason: "error" | "aborted" | "end",
  text: string,
  error?: { kind: string; message: string },
): void {
  const { record } = draft;
  const { model = "none", provider = "none" } = record.last_assistant ?? {};
  const mark = error === undefined ? {} : { error_message: error.message, error_kind: "permanent" as const };
  const message: AssistantMessage = {
    role: "assistant",
    content: [{ type: "text", text }],
    stop_reason,
    ...mark,
    model,
    provider,
    timestamp: draft.now,
  };
  change(draft, { last_assistant: message, turn_end_emitted: false });
  send(draft, { entry_id: `e_${record.turn_id}_${record.turn_count}_${stop_reason}`, message });
  emit(draft, { type: "message_complete", message_id: `${messageId(record)}_${stop_reason}`, message, body_streamed: false });
}

export function beginModelCall(draft: Draft): void {
  const { record } = draft;
  if (record.turn_count >= record.max_turns) {
    synthesise(
      draft,
      "end",
      `Stopped: this turn has made ${record.max_turns} model calls, its limit (max_turns). Send a message to go on.`,
    );
    change(draft, { ending: { state: "stopped", stop_reason: "max_turns" } });
    return;
  }
  change(draft, { turn_count: record.turn_count + 1, attempt: 1, turn_end_emitted: false });
  enter(draft, "assistant_streaming");
}

/** A whole batch is done: what comes next. */
export function afterBatch(draft: Draft, terminate: boolean): void {
  const { record } = draft;
  enter(draft, "steering_check");
  if (record.ending !== null) return;
  if (record.abort !== null) {
    change(draft, { ending: { state: "stopped", stop_reason: "aborted" } });
    return;
  }
  if (record.last_assistant?.stop_reason === "length") {
    change(draft, { ending: { state: "stopped", stop_reason: "length" } });
    return;
  }
  if (terminate) {
    change(draft, { ending: { state: "stopped", stop_reason: "terminated" } });
    return;
  }
  beginModelCall(draft);
}

export function finish(draft: Draft, ending: NonNullable<TurnRecord["ending"]>): void {
  const { record } = draft;
  if (!record.turn_end_emitted) emit(draft, { type: "turn_end", message: record.last_assistant, function_results: [] });
  const failed = ending.state === "failed" && record.last_assistant !== null;
  emit(draft, { type: "agent_end", turn_id: record.turn_id, messages: failed && record.last_assistant ? [record.last_assistant] : [] });
  draft.outs.push({ type: "forget_deltas", prefix: `m_${record.turn_id}_` });
  const { error, stop_reason } = ending;
  change(draft, { turn_end_emitted: true, stop_reason, ...(error === undefined ? {} : { error }) });
  enter(draft, ending.state);
}
