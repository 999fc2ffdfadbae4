// The end of a call: answered once, timed out, cancelled, or left without its executor or caller.
import type { ErrorBody } from "@iii/sdk";
import { ResultHead } from "@iii/sdk/protocol";
import { type Connection, stopMaking, stopRunning } from "./connection.ts";
import type { Core } from "./core.ts";
import type { Effect, Outcome } from "./effects.ts";
import type { Invocation } from "./pending.ts";

function error(code: string, message: string): ErrorBody {
  return { code, message };
}

/** The trace context that a call's frames carry. */
export function traceOf(from: { traceparent?: string | undefined; baggage?: string | undefined }): object {
  const { traceparent, baggage } = from;
  return { ...(traceparent === undefined ? {} : { traceparent }), ...(baggage === undefined ? {} : { baggage }) };
}

/** Ends a call: out of the tables, and its outcome to whoever waits. A second end does nothing. */
export function settle(core: Core, id: string, outcome: Outcome, out: Effect[], answered = true): void {
  const invocation = core.invocations.remove(id);
  if (invocation === undefined) return;
  const { client_id, function_id } = invocation;
  if (invocation.caller === null) {
    if (client_id !== undefined) out.push({ type: "settle", id: client_id, outcome, answered });
    return;
  }
  const caller = core.connections.get(invocation.caller);
  if (caller !== undefined) stopMaking(caller, invocation);
  if (client_id === undefined || caller === undefined) return;
  if (caller.calls.get(client_id) === id) caller.calls.delete(client_id);
  const { traceparent, baggage } = invocation;
  const head = new ResultHead({ invocation_id: client_id, function_id, error: outcome.error, traceparent, baggage });
  const result =
    outcome.error === undefined && outcome.payload !== undefined ? { payloadKey: "result" as const, payload: outcome.payload } : {};
  // A slow caller pays for its own answers: whoever made them serves others, too.
  out.push({ type: "send", conn: caller.id, from: caller.id, head, ...result });
}

/** An executor answers. Only the connection that the call was routed to can, and only once. */
export function answer(core: Core, conn: Connection, id: string, outcome: Outcome, out: Effect[]): void {
  const invocation = conn.running.get(id);
  if (invocation === undefined) {
    out.push({ type: "note", level: "debug", message: "an answer to nothing outstanding is ignored", fields: { worker_id: conn.id } });
    return;
  }
  stopRunning(conn, invocation, core.now());
  settle(core, id, outcome, out);
}

/** A frame could not be written: whoever waits for it is answered instead. */
export function unwritable(core: Core, effect: Extract<Effect, { type: "send" }>, reason: string, out: Effect[]): void {
  const { type, invocation_id, function_id } = effect.head as { type?: string; invocation_id?: string; function_id?: string };
  if (invocation_id === undefined) return;
  const body = error("serialization_error", `'${function_id}': the message cannot be written: ${reason}`);
  if (type === "invokefunction") {
    const executor = core.connections.get(effect.conn);
    const running = executor?.running.get(invocation_id);
    if (executor !== undefined && running !== undefined) stopRunning(executor, running, core.now());
    settle(core, invocation_id, { error: body }, out, false);
  } else if (type === "invocationresult") {
    out.push({ type: "send", conn: effect.conn, from: null, head: { type, invocation_id, function_id, error: body } });
  }
}

/** Tells the executor that nobody waits any more. */
function tellCancel(core: Core, invocation: Invocation, out: Effect[]): void {
  const { executor, id } = invocation;
  if (executor === null || invocation.cancelled || !core.connections.has(executor)) return;
  out.push({ type: "send", conn: executor, from: null, head: { type: "cancel", invocation_id: id } });
}

/** The caller no longer wants the answer: the executor has a moment to stop and answer, then the call ends as `cancelled`. */
export function cancel(core: Core, id: string | undefined, now: number, out: Effect[]): void {
  const invocation = id === undefined ? undefined : core.invocations.get(id);
  if (invocation === undefined || invocation.cancelled) return;
  tellCancel(core, invocation, out);
  invocation.cancelled = true;
  core.invocations.shorten(invocation, now + core.limits.cancel_grace_ms);
}

/**
 * Forgets that the executor runs a call that has ended for its caller. An agent's call is kept a while for its executor's answer:
 * what runs on past the deadline still runs on the agent's behalf. One that never answers gives its place back.
 */
function abandon(core: Core, invocation: Invocation): void {
  const executor = invocation.executor === null ? undefined : core.connections.get(invocation.executor);
  if (executor === undefined) return;
  if (invocation.origin === "agent") core.invocations.keep(invocation, core.now() + core.limits.overdue_ms);
  else stopRunning(executor, invocation, core.now());
}

/** Gives back the places of agents' calls whose executors never answered. */
function release(core: Core, now: number): void {
  for (const invocation of core.invocations.takeOverdue(now)) {
    const executor = invocation.executor === null ? undefined : core.connections.get(invocation.executor);
    if (executor !== undefined) stopRunning(executor, invocation, now);
  }
}

/** Ends every call whose deadline has passed. */
export function expire(core: Core, now: number, out: Effect[]): void {
  release(core, now);
  for (const invocation of core.invocations.takeDue(now)) {
    tellCancel(core, invocation, out);
    abandon(core, invocation);
    const reason = invocation.cancelled
      ? error("cancelled", `'${invocation.function_id}' was cancelled and did not answer in time`)
      : error("TIMEOUT", `'${invocation.function_id}' did not answer before its deadline`);
    settle(core, invocation.id, { error: reason }, out, false);
  }
}

/** The executor's or the caller's connection is gone: waiting callers hear it, executors may stop. */
export function stopCallsOf(core: Core, conn: Connection, out: Effect[]): void {
  for (const invocation of [...conn.running.values()]) {
    stopRunning(conn, invocation, core.now());
    settle(core, invocation.id, { error: error("invocation_stopped", "Invocation stopped") }, out, false);
  }
  for (const id of conn.made) {
    // Nobody waits for the answer of a void call: it goes on without its caller.
    if (core.invocations.get(id)?.client_id === undefined) continue;
    const invocation = core.invocations.remove(id);
    if (invocation === undefined) continue;
    tellCancel(core, invocation, out);
    abandon(core, invocation);
  }
  conn.made.clear();
  conn.leased = 0;
  conn.calls.clear();
}
