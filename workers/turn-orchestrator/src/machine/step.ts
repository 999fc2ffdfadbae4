// The turn as a pure machine: `step` takes a record and an event and gives the next record with what must be written beside it.
// No I/O, no clock, no chance. An outcome that comes twice, late or out of order changes nothing.
import type { AssistantMessage, DecisionRecord } from "@iii/contracts";
import { progressBatch, settleCall } from "./batch.ts";
import { announce, change, type Draft, emit, enter, retake } from "./draft.ts";
import { callEffect, effectKey, type Step, type TurnEvent } from "./events.ts";
import { type Ending, isTerminal, type TurnCall, type TurnRecord } from "./record.ts";
import { argsChanged, denied, errorResult, interrupted, type Settled } from "./results.ts";
import { afterBatch, beginModelCall, fail, finish, synthesise, takeMessage } from "./rounds.ts";

/** A model call whose provider goes away before it says anything is made anew this often. What a provider answers, errors too, stands. */
const MAX_VANISHED = 1;
/** A model call whose process dies this often ends the turn. */
const MAX_ATTEMPTS = 20;
/** A repeatable call whose process dies this often is given up. */
const MAX_CALL_ATTEMPTS = 5;
/** The view names so many entries that the transcript refused. */
const MAX_LOST = 20;

function lost(draft: Draft, call: TurnCall & { phase: "started" | "probing" }): void {
  const unknown = (): void =>
    settleCall(draft, call, interrupted(call.function_id), { duration_ms: Math.max(0, draft.now - call.started_at) });
  if (draft.record.abort !== null) {
    unknown();
    return;
  }
  const { effect, probe } = call.policy;
  const again = effect === "none" || effect === "idempotent";
  if (again && call.attempt < MAX_CALL_ATTEMPTS) {
    retake(draft, { ...call, phase: "started", attempt: call.attempt + 1 });
    return;
  }
  if (!again && probe !== undefined && call.attempt < MAX_CALL_ATTEMPTS) {
    retake(draft, { ...call, phase: "probing" });
    return;
  }
  unknown();
}

function woken(draft: Draft): void {
  const { record } = draft;
  for (const call of record.calls) if (call.phase === "started" || call.phase === "probing") lost(draft, call);
  if (record.state !== "assistant_streaming" || record.ending !== null) return;
  if (record.attempt < MAX_ATTEMPTS) change(draft, { attempt: record.attempt + 1 });
  else fail(draft, "model_call_lost", `the model call was interrupted ${MAX_ATTEMPTS} times`);
}

function generated(draft: Draft, event: TurnEvent & { type: "generated" }): void {
  const { record } = draft;
  const current = record.state === "assistant_streaming" && record.ending === null && event.answers === effectKey.generate(record);
  if (!current) return;
  if (event.vanished && record.attempt <= MAX_VANISHED && record.abort === null) {
    change(draft, { attempt: record.attempt + 1 });
    return;
  }
  takeMessage(draft, event.message, event.streamed);
  const ending = endingOf(event.message, event.calls.length > 0);
  if (ending !== null) {
    change(draft, { ending });
    enter(draft, "steering_check");
    return;
  }
  enter(draft, "function_execute");
  for (const { call, settled } of event.calls) {
    change(draft, { calls: [...draft.record.calls, call] });
    if (settled !== undefined) settleCall(draft, call, settled, { duration_ms: 0 });
  }
}

/** How a turn ends with this message; null when it goes on with the message's calls. */
function endingOf(message: AssistantMessage, calls: boolean): Ending | null {
  const { stop_reason, error_kind, error_message, retry_after_ms } = message;
  switch (stop_reason) {
    case "error":
      return {
        state: "stopped",
        stop_reason,
        error: {
          kind: error_kind ?? stop_reason,
          message: error_message ?? stop_reason,
          ...(typeof retry_after_ms === "number" ? { retry_after_ms } : {}),
        },
      };
    case "aborted":
      return { state: "stopped", stop_reason };
    case "length":
      return calls ? null : { state: "stopped", stop_reason };
    case "end":
    case "function_call":
      return calls ? null : { state: "stopped", stop_reason: "end" };
  }
}

function callByKey(record: TurnRecord, answers: string): TurnCall | undefined {
  return record.calls.find((call) => callEffect(call)[0]?.key === answers);
}

function judged(draft: Draft, event: TurnEvent & { type: "judged" }): void {
  const call = callByKey(draft.record, event.answers);
  if (call?.phase !== "planned") return;
  const { verdict } = event;
  switch (verdict.type) {
    case "allow":
      retake(draft, { ...call, phase: "ready", policy: verdict.policy });
      return;
    case "refuse":
      settleCall(draft, call, verdict.settled, { duration_ms: 0 });
      return;
    case "park": {
      const { policy, args_sha256, rule_id, expires_in_ms } = verdict;
      const expires_at = expires_in_ms === null ? null : draft.now + expires_in_ms;
      const rule = rule_id === undefined ? {} : { rule_id };
      const parked = { ...call, phase: "parked" as const, policy, args_sha256, ...rule, requested_at: draft.now, expires_at };
      retake(draft, parked);
      draft.outs.push({ type: "park", call: parked });
      const { id: function_call_id, function_id, args } = call;
      emit(draft, { type: "function_execution_start", function_call_id, function_id, args, awaiting_approval: true });
      return;
    }
  }
}

function decided(draft: Draft, event: TurnEvent & { type: "decided" }): void {
  const call = draft.record.calls.find((candidate) => candidate.id === event.call_id);
  if (call?.phase !== "parked") return;
  draft.outs.push({ type: "unpark", call_id: call.id });
  const { function_id } = call;
  const waited = { duration_ms: Math.max(0, draft.now - call.requested_at) };
  const { decision } = event;
  if (typeof decision === "string") {
    settleCall(draft, call, undecided(function_id, decision), waited);
    return;
  }
  if (decision.decision === "allow") {
    retake(draft, { ...call, phase: "released", decision });
    return;
  }
  settleCall(draft, call, refused(function_id, decision), { ...waited, decision });
}

function undecided(function_id: string, why: "expired" | "args_changed" | "unreadable"): Settled {
  switch (why) {
    case "expired":
      return denied({ denied_by: "expired", function_id, reason: "Nobody decided in time; the request expired." });
    case "args_changed":
      return argsChanged(function_id);
    case "unreadable":
      return errorResult("approval_unreadable", "refused: the stored request for approval cannot be read; nothing was run", {
        function: function_id,
      });
  }
}

/** A person's no. The reason is said only when there is one. */
function refused(function_id: string, { decision, reason }: DecisionRecord): Settled {
  const why = reason === null || reason === "" ? {} : { reason };
  const told = reason === null || reason === "" ? "" : `: ${reason}`;
  if (decision === "deny") return denied({ denied_by: "user", function_id, ...why }, undefined, `Permission denied by user${told}`);
  const settled = errorResult("aborted", `Function call aborted by user${told}`, { function: function_id, decision: "aborted" });
  return { ...settled, result: { ...settled.result, terminate: true } };
}

function rechecked(draft: Draft, event: TurnEvent & { type: "rechecked" }): void {
  const call = callByKey(draft.record, event.answers);
  if (call?.phase !== "released") return;
  if (event.refused !== null) {
    settleCall(draft, call, event.refused, { duration_ms: 0, decision: call.decision });
    return;
  }
  retake(draft, { ...call, phase: "ready" });
}

function returned(draft: Draft, event: TurnEvent & { type: "returned" }): void {
  const call = callByKey(draft.record, event.answers);
  if (call?.phase !== "started") return;
  const { outcome } = event;
  if (outcome.type === "lost") {
    lost(draft, call);
    return;
  }
  if (outcome.whole !== undefined) draft.outs.push({ type: "keep", call_id: call.id, value: outcome.whole });
  settleCall(draft, call, outcome.settled, {
    duration_ms: outcome.duration_ms,
    ...(call.decision === undefined ? {} : { decision: call.decision }),
  });
}

function probed(draft: Draft, event: TurnEvent & { type: "probed" }): void {
  const call = callByKey(draft.record, event.answers);
  if (call?.phase !== "probing") return;
  const duration_ms = Math.max(0, draft.now - call.started_at);
  if (event.answer === "unknown" || (event.answer === "not_run" && draft.record.abort !== null)) {
    settleCall(draft, call, interrupted(call.function_id), { duration_ms });
    return;
  }
  if (event.answer === "not_run") {
    retake(draft, { ...call, phase: "started", attempt: call.attempt + 1 });
    return;
  }
  settleCall(draft, call, event.answer, { duration_ms });
}

function appended(draft: Draft, event: TurnEvent & { type: "appended" }): void {
  const { pending, lost_entries = [] } = draft.record;
  if (event.next <= pending.first || event.next > pending.next) return;
  draft.outs.push({ type: "dropped", first: pending.first, next: event.next });
  change(draft, { pending: { ...pending, first: event.next, bytes: Math.max(0, pending.bytes - event.bytes) } });
  if (event.lost.length > 0) change(draft, { lost_entries: [...lost_entries, ...event.lost].slice(-MAX_LOST) });
}

function aborted(draft: Draft, reason: string): void {
  if (draft.record.abort === null) change(draft, { abort: { reason } });
}

/** Walks every transition that needs no effect, until one does. */
function settle(draft: Draft, giveUp: boolean): void {
  const { record } = draft;
  if (record.state === "provisioning" && record.ending === null) {
    if (record.abort === null) beginModelCall(draft);
    else {
      synthesise(draft, "aborted", "Aborted before the model was asked.");
      change(draft, { ending: { state: "stopped", stop_reason: "aborted" } });
    }
  }
  if (draft.record.calls.length > 0) {
    const batch = progressBatch(draft);
    if (batch.done) afterBatch(draft, batch.terminate);
  }
  const { ending, pending, calls } = draft.record;
  if (ending !== null && calls.length === 0 && (pending.first === pending.next || giveUp)) finish(draft, ending);
}

function apply(draft: Draft, event: TurnEvent): void {
  switch (event.type) {
    case "woken":
      woken(draft);
      return;
    case "generated":
      generated(draft, event);
      return;
    case "judged":
      judged(draft, event);
      return;
    case "rechecked":
      rechecked(draft, event);
      return;
    case "returned":
      returned(draft, event);
      return;
    case "probed":
      probed(draft, event);
      return;
    case "decided":
      decided(draft, event);
      return;
    case "appended":
      appended(draft, event);
      return;
    case "aborted":
      aborted(draft, event.reason);
      return;
    case "broken":
      fail(draft, event.kind, event.message);
      return;
  }
}

/** The next record, and what is to be written with it. The same record comes back when the event changes nothing. */
export function step(record: TurnRecord, event: TurnEvent): Step {
  if (isTerminal(record)) return { record, outs: [] };
  const draft: Draft = { record, before: record, outs: [], now: event.now };
  apply(draft, event);
  settle(draft, event.type === "broken" && event.give_up);
  announce(draft);
  return { record: draft.record, outs: draft.outs };
}
