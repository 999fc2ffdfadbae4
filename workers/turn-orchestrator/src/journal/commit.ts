// One step as one transaction: the record, what stands beside it, the events, the next message and the acknowledgement. Pure.
import { AGENT_EVENTS, AGENT_TURN_END, type AgentEvent } from "@iii/contracts";
import { bytesOf } from "@iii/contracts/storable";
import { APPROVALS_SCOPE, type ApprovalRow, approvalKey } from "@iii/worker-approval-gate/contract";
import type { Out } from "../machine/draft.ts";
import {
  EMPTY_POINTER,
  isTerminal,
  keys,
  leftAt,
  type PendingRows,
  type QueuedRun,
  SESSION_SCOPE,
  type TurnCall,
  type TurnRecord,
  viewOf,
} from "../machine/record.ts";
import { ACTIVE_SCOPE, type Line, RESULTS_SCOPE, type Transaction } from "./store.ts";

export const STEP_QUEUE = "turn-step";
export const STEP_FUNCTION = "turn::step";
export const EXPIRY_FUNCTION = "turn::on_expiry";

type PartName = "checks" | "writes" | "enqueue" | "events" | "drops";
/** A transaction in the making. */
export type Parts = { [K in PartName]-?: NonNullable<Transaction[K]> };

export function emptyParts(): Parts {
  return { checks: [], writes: [], enqueue: [], events: [], drops: [] };
}

function trace(record: TurnRecord): { traceparent?: string; baggage?: string } {
  const { traceparent, baggage } = record;
  return { ...(traceparent === undefined ? {} : { traceparent }), ...(baggage === undefined ? {} : { baggage }) };
}

/** The message that makes a turn walk. While one waits or runs, `dedupe` adds no second. */
export function stepMessage(record: TurnRecord, dedupe: boolean): Parts["enqueue"][number] {
  const { session_id, turn_id } = record;
  const message = { queue: STEP_QUEUE, function_id: STEP_FUNCTION, data: { session_id }, ...trace(record) };
  return dedupe ? { ...message, dedupe_key: `step:${session_id}:${turn_id}` } : message;
}

/** The message that looks whether a parked call has expired. */
export function expiryMessage(record: TurnRecord, function_call_id: string, delay_ms: number): Parts["enqueue"][number] {
  const data = { session_id: record.session_id, function_call_id };
  return { queue: "default", function_id: EXPIRY_FUNCTION, data, delay_ms: Math.ceil(delay_ms), ...trace(record) };
}

export function eventItem(record: TurnRecord, seq: number, event: AgentEvent): Parts["events"] {
  const item_id = `${record.turn_id}/${String(seq).padStart(8, "0")}`;
  const item = { group_id: record.session_id, item_id, data: event };
  const copy = event.type === "turn_end" ? [{ stream_name: AGENT_TURN_END, ...item }] : [];
  return [{ stream_name: AGENT_EVENTS, ...item }, ...copy];
}

function approvalRow(record: TurnRecord, call: TurnCall & { phase: "parked" }): ApprovalRow {
  const { id, function_id, args, args_sha256, rule_id, requested_at, expires_at } = call;
  const rule = rule_id === undefined ? {} : { rule_id };
  const { session_id } = record;
  return { status: "pending", session_id, function_call_id: id, function_id, args, args_sha256, requested_at, expires_at, ...rule };
}

function park(parts: Parts, record: TurnRecord, call: TurnCall & { phase: "parked" }): void {
  const { session_id } = record;
  parts.writes.push({ scope: APPROVALS_SCOPE, key: approvalKey(session_id, call.id), value: approvalRow(record, call) });
  if (call.expires_at === null) return;
  parts.enqueue.push(expiryMessage(record, call.id, Math.max(0, call.expires_at - call.requested_at)));
}

function addOut(parts: Parts, record: TurnRecord, out: Out): void {
  const { session_id } = record;
  switch (out.type) {
    case "event":
      parts.events.push(...eventItem(record, out.seq, out.event));
      return;
    case "park":
      park(parts, record, out.call);
      return;
    case "unpark":
      parts.writes.push({ scope: APPROVALS_SCOPE, key: approvalKey(session_id, out.call_id), delete: true });
      return;
    case "keep":
      parts.writes.push({ scope: RESULTS_SCOPE, key: approvalKey(session_id, out.call_id), value: out.value });
      return;
    case "entry":
      parts.writes.push({ scope: SESSION_SCOPE, key: keys.pending(session_id, out.n), value: out.entry });
      return;
    case "dropped":
      for (let n = out.first; n < out.next; n += 1)
        parts.writes.push({ scope: SESSION_SCOPE, key: keys.pending(session_id, n), delete: true });
      return;
    case "forget_deltas":
      parts.drops.push({ stream_name: AGENT_EVENTS, group_id: session_id, prefix: out.prefix });
      return;
  }
}

/**
 * Writes a run's first record, its messages as pending rows behind those that are `left`, and the message that makes it walk. The caller
 * has checked that the session is free.
 */
export function beginRun(parts: Parts, run: QueuedRun, left: PendingRows): void {
  const { request, entries } = run;
  const { session_id, turn_id } = run.record;
  const pending = { ...left };
  for (const entry of entries) {
    parts.writes.push({ scope: SESSION_SCOPE, key: keys.pending(session_id, pending.next), value: entry });
    pending.next += 1;
    pending.bytes += bytesOf(entry);
  }
  const record = { ...run.record, pending };
  parts.writes.push(
    { scope: SESSION_SCOPE, key: keys.record(session_id), value: { ...record, event_seq: record.event_seq + 1 } },
    { scope: SESSION_SCOPE, key: keys.request(session_id), value: request },
    { scope: ACTIVE_SCOPE, key: session_id, value: { turn_id } },
  );
  parts.enqueue.push(stepMessage(record, true));
  const new_value = viewOf(record, leftAt(record.updated_at_ms));
  const event: AgentEvent = { type: "turn_state_changed", event_type: "state:created", new_value };
  parts.events.push(...eventItem(record, record.event_seq, event));
}

export interface StepCommit {
  readonly rev: number;
  readonly abortRev: number;
  readonly record: TurnRecord;
  readonly outs: readonly Out[];
  /** Nothing runs any more: the delivery is settled in this commit. */
  readonly last: boolean;
  /** The session's line; read for a commit that ends the turn. */
  readonly line: Line | undefined;
  readonly now: number;
}

function endTurn(parts: Parts, record: TurnRecord, line: Line, now: number): void {
  const { session_id } = record;
  const pointer = line.pointer.value ?? EMPTY_POINTER;
  const key = keys.pointer(session_id);
  parts.checks.push({ scope: SESSION_SCOPE, key, rev: line.pointer.rev });
  parts.writes.push({ scope: SESSION_SCOPE, key: keys.abort(session_id), delete: true });
  if (line.next === undefined) {
    parts.writes.push({ scope: SESSION_SCOPE, key: keys.record(session_id), value: record });
    parts.writes.push({ scope: ACTIVE_SCOPE, key: session_id, delete: true });
    // Written also when it does not change: whoever is about to join the line must see that the turn has ended.
    parts.writes.push({ scope: SESSION_SCOPE, key, value: pointer });
    return;
  }
  const { fault, ...run } = line.next;
  const next = { ...run.record, started_at_ms: now, updated_at_ms: now };
  // A run that cannot be read starts all the same, to its end: every accepted turn ends, and those behind it have their turn.
  const ending =
    fault === undefined
      ? {}
      : { ending: { state: "failed" as const, stop_reason: "error", error: { kind: "store_corrupt", message: fault } } };
  beginRun(parts, { ...run, record: { ...next, ...ending } }, record.pending);
  parts.writes.push({ scope: SESSION_SCOPE, key: keys.queued(session_id, pointer.head), delete: true });
  parts.writes.push({ scope: SESSION_SCOPE, key, value: { ...pointer, head: pointer.head + 1 } });
}

/** The transaction of one step. Its record is the first write unless the turn ends. */
export function transaction(commit: StepCommit): Parts & { ack?: true } {
  const { record, line, now } = commit;
  const { session_id } = record;
  const parts = emptyParts();
  parts.checks.push(
    { scope: SESSION_SCOPE, key: keys.record(session_id), rev: commit.rev },
    { scope: SESSION_SCOPE, key: keys.abort(session_id), rev: commit.abortRev },
  );
  const ends = isTerminal(record);
  if (!ends) parts.writes.push({ scope: SESSION_SCOPE, key: keys.record(session_id), value: record });
  for (const out of commit.outs) addOut(parts, record, out);
  if (ends && line !== undefined) endTurn(parts, record, line, now);
  return { ...parts, ...(commit.last ? { ack: true as const } : {}) };
}
