// The calls of one model message: which may start, when each has its one result, and when the batch is whole. Pure.
import type { DecisionRecord, FunctionResultMessage } from "@iii/contracts";
import { change, type Draft, emit, enter, retake, send } from "./draft.ts";
import type { TurnCall } from "./record.ts";
import { abortedResult, type Settled } from "./results.ts";

/** How many calls of a batch run at once, when their functions allow it. */
const MAX_CONCURRENT = 8;

type Open = Exclude<TurnCall, { phase: "done" }>;

function wasShown(call: Open): boolean {
  if (call.phase === "planned") return false;
  return call.phase !== "ready" || call.args_sha256 !== undefined;
}

function showStart(draft: Draft, call: Open): void {
  if (wasShown(call)) return;
  emit(draft, { type: "function_execution_start", function_call_id: call.id, function_id: call.function_id, args: call.args });
}

/** Gives a call its result. The last step of every call, whatever happened to it. */
export function settleCall(draft: Draft, call: Open, settled: Settled, with_: { duration_ms: number; decision?: DecisionRecord }): void {
  showStart(draft, call);
  const { id, function_id, args, note } = call;
  const { result, is_error } = settled;
  retake(draft, { id, function_id, args, ...(note === undefined ? {} : { note }), phase: "done", result, is_error, ...with_ });
  const { duration_ms } = with_;
  emit(draft, { type: "function_execution_end", function_call_id: id, function_id, result, is_error, duration_ms });
}

/** Settles every call that has no result yet; parked ones leave the approvals too. */
export function closeOpenCalls(draft: Draft, why: (call: Open) => Settled, only: (call: Open) => boolean = () => true): void {
  for (const call of draft.record.calls) {
    if (call.phase === "done" || !only(call)) continue;
    if (call.phase === "parked") draft.outs.push({ type: "unpark", call_id: call.id });
    settleCall(draft, call, why(call), { duration_ms: 0 });
  }
}

/** Has left, and has no result yet. */
export const runs = (call: TurnCall): boolean => call.phase === "started" || call.phase === "probing";

function startable(calls: readonly TurnCall[]): (TurnCall & { phase: "ready" })[] {
  const running = calls.filter(runs);
  if (running.some((call) => call.phase !== "done" && "policy" in call && !call.policy.parallel)) return [];
  let room = MAX_CONCURRENT - running.length;
  const starting: (TurnCall & { phase: "ready" })[] = [];
  for (const call of calls) {
    if (call.phase !== "ready" || room <= 0) continue;
    if (!call.policy.parallel) {
      if (running.length + starting.length === 0) starting.push(call);
      break;
    }
    starting.push(call);
    room -= 1;
  }
  return starting;
}

function start(draft: Draft, call: TurnCall & { phase: "ready" }): void {
  showStart(draft, call);
  retake(draft, { ...call, phase: "started", attempt: 1, started_at: draft.now });
}

function asMessage(call: TurnCall & { phase: "done" }, now: number): FunctionResultMessage {
  const note = call.note === undefined ? [] : [{ type: "text" as const, text: call.note }];
  return {
    role: "function_result",
    function_call_id: call.id,
    function_id: call.function_id,
    content: [...call.result.content, ...note],
    details: call.result.details,
    is_error: call.is_error,
    timestamp: now,
  };
}

/** Sends the results behind the message that asked for them. True: every one of them asked for the end. */
export function closeBatch(draft: Draft): boolean {
  const { turn_id, turn_count, last_assistant, calls } = draft.record;
  const done = calls.filter((call) => call.phase === "done");
  const results = done.map((call) => asMessage(call, draft.now));
  for (const [index, message] of results.entries()) send(draft, { entry_id: `e_${turn_id}_${turn_count}_r${index}`, message });
  change(draft, { calls: [], turn_end_emitted: true });
  emit(draft, { type: "turn_end", message: last_assistant, function_results: results });
  return done.every((call) => call.result.terminate === true);
}

/** Starts what may start and closes the batch when every call has its result. `terminate`: every result asked for the end. */
export function progressBatch(draft: Draft): { done: boolean; terminate: boolean } {
  const { abort } = draft.record;
  if (abort !== null)
    closeOpenCalls(
      draft,
      (call) => abortedResult(call.function_id, abort.reason),
      (call) => !runs(call),
    );
  const { calls } = draft.record;
  if (calls.every((call) => call.phase === "done")) return { done: true, terminate: closeBatch(draft) };
  if (calls.some((call) => call.phase === "planned" || call.phase === "released")) return { done: false, terminate: false };
  for (const call of startable(calls)) start(draft, call);
  const moving = draft.record.calls.some((call) => runs(call) || call.phase === "ready");
  enter(draft, moving ? "function_execute" : "function_awaiting_approval");
  return { done: false, terminate: false };
}
