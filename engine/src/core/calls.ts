// The start of a call: admitted, routed, sent to its executor. Changes the tables it is given and returns effects.
import type { ErrorBody } from "@iii/sdk";
import { type Action, type CallContext, CallHead, encodeFrame, type Origin, type Principal } from "@iii/sdk/protocol";
import type { CallFacts } from "./access.ts";
import { withBaggage } from "./baggage.ts";
import { type Connection, startMaking, startRunning } from "./connection.ts";
import type { Core } from "./core.ts";
import type { Effect } from "./effects.ts";
import { traceOf } from "./endings.ts";
import type { Invocation } from "./pending.ts";
import { NOBODY } from "./rights.ts";

export interface CallRequest {
  /** The calling connection; null when the engine calls. */
  readonly caller: Connection | null;
  /** Where the answer goes; undefined when none is wanted. */
  readonly client_id: string | undefined;
  readonly function_id: string;
  readonly payload: Uint8Array | undefined;
  readonly metadata?: unknown;
  readonly traceparent?: string | undefined;
  readonly baggage?: string | undefined;
  readonly action?: Action | undefined;
  readonly timeout_ms?: number | undefined;
  /** The invocation this call says it is nested in; believed only when the caller is running it. */
  readonly parent?: string | undefined;
  /** The caller marks the call itself. */
  readonly marked?: boolean;
  /** The session that it says the call is made for; believed of whoever runs the turns. */
  readonly session?: string | undefined;
  /** For calls that the engine makes: the mark and depth that the work carried, and an id that is known already. */
  readonly origin?: Origin | undefined;
  readonly depth?: number | undefined;
  /** … whose call made the work, and who bound the trigger that it serves. */
  readonly principal?: Principal | undefined;
  readonly by?: Principal | undefined;
  readonly id?: string | undefined;
  /** It is a delivery of a queue. */
  readonly lease?: boolean;
}

/** What the engine established about a call. */
interface Admission {
  readonly origin: Origin;
  readonly direct: boolean;
  readonly session: string | undefined;
  readonly principal: Principal;
  readonly depth: number;
  /** Monotonic ms. */
  readonly deadline: number | null;
  readonly now: number;
  readonly parent: string | undefined;
  /** Made within a queue's delivery that the caller runs. */
  readonly leased: boolean;
}

const ENQUEUE = "engine::queue::enqueue";
const NULL_PAYLOAD = "null";

function error(code: string, message: string): ErrorBody {
  return { code, message };
}

function deadlineOf(core: Core, timeout_ms: number | undefined, outer: number | null, now: number): number | null {
  const own = timeout_ms === 0 ? null : now + (timeout_ms ?? core.limits.call_timeout_ms);
  if (own === null) return outer;
  return outer === null ? own : Math.min(own, outer);
}

/**
 * The agent's mark of a call: its parent's, else what its connection holds, else what it says itself. What a control-plane worker does
 * for a call is its own business: it marks only by naming the session, as the one that runs the agent does. Clients hand a mark on by
 * themselves, without one.
 */
function markOf(
  core: Core,
  request: CallRequest,
  caller: Connection,
  parent: Invocation | undefined,
): { session: string | undefined; direct: boolean } | undefined {
  if (caller.mark === undefined && request.session === undefined) return undefined;
  if (caller.mark !== undefined && parent?.origin === "agent") return { session: parent.session, direct: false };
  const held = parent === undefined ? caller.mark?.at(core.now()) : undefined;
  if (held !== undefined) return { session: held.session, direct: false };
  if (request.marked !== true) return undefined;
  return { session: core.access.namesSessions(caller.principal) ? request.session : undefined, direct: true };
}

/** Origin, depth and deadline of a call: what the caller claims can only lower its rights. */
function admit(core: Core, request: CallRequest, now: number): Admission {
  const { caller } = request;
  if (caller === null) {
    const { origin = "engine", depth = 0, timeout_ms, session, principal = NOBODY } = request;
    const deadline = deadlineOf(core, timeout_ms, null, now);
    return { origin, direct: false, session, principal, depth, deadline, now, parent: undefined, leased: false };
  }
  const parent = request.parent === undefined ? undefined : caller.running.get(request.parent);
  const mark = markOf(core, request, caller, parent);
  return {
    origin: mark === undefined ? caller.kind : "agent",
    direct: mark?.direct === true,
    session: mark?.session,
    principal: caller.principal,
    depth: parent === undefined ? 0 : parent.depth + 1,
    deadline: deadlineOf(core, request.timeout_ms, parent?.deadline ?? null, now),
    now,
    parent: parent?.id,
    leased: parent?.lease === true,
  };
}

/** Answers the caller that its call did not happen. */
function refuse(request: CallRequest, reason: ErrorBody, out: Effect[]): void {
  const { caller, client_id, function_id } = request;
  if (client_id === undefined) {
    const fields = { function_id, code: reason.code, worker_id: caller?.id };
    out.push({ type: "note", level: "debug", message: "a call that wants no answer was refused", fields });
    return;
  }
  if (caller === null) {
    out.push({ type: "settle", id: client_id, outcome: { error: reason }, answered: false });
    return;
  }
  const trace = traceOf(request);
  const head = { type: "invocationresult", invocation_id: client_id, function_id, error: reason, ...trace };
  out.push({ type: "send", conn: caller.id, from: caller.id, head });
}

/** Why this call may not start, if so. The access rules stand before the question whether anyone serves the id. */
function objection(core: Core, request: CallRequest, admission: Admission): ErrorBody | undefined {
  const { caller, function_id } = request;
  const kind: CallFacts["kind"] = caller?.kind ?? "engine";
  const { origin, direct, principal, session } = admission;
  const facts = { origin, direct, kind, principal, session, by: request.by };
  const refused = core.access.refuseCall(function_id, facts, () => readPayload(request.payload));
  if (refused !== undefined) return refused;
  if (core.draining && !(caller === null ? admission.depth > 0 : caller.running.size > 0)) {
    return error("invocation_stopped", "the engine is stopping and starts no new work");
  }
  if (admission.depth > core.limits.max_depth) {
    return error("depth_exceeded", `'${function_id}' would be nested deeper than ${core.limits.max_depth} calls`);
  }
  if (caller !== null && !admission.leased && caller.made.size - caller.leased >= core.limits.max_in_flight) {
    return error("too_many_in_flight", `this connection already waits for ${core.limits.max_in_flight} calls`);
  }
  return undefined;
}

/** For the few rules that look into a payload. What cannot be read says nothing. */
function readPayload(payload: Uint8Array | undefined): unknown {
  try {
    return payload === undefined ? undefined : JSON.parse(new TextDecoder().decode(payload));
  } catch {
    return undefined;
  }
}

/** Starts a call, or answers why not. */
export function call(core: Core, request: CallRequest, now: number, out: Effect[]): void {
  const admission = admit(core, request, now);
  const refused = objection(core, request, admission);
  if (refused !== undefined) refuse(request, refused, out);
  else if (request.action?.type === "enqueue") start(core, enqueueRequest(core, request, admission), admission, out);
  else start(core, request, admission, out);
}

/** The same call as work for the queue. The mark goes with it. */
function enqueueRequest(core: Core, request: CallRequest, admission: Admission): CallRequest {
  const { function_id, traceparent, baggage, action, payload } = request;
  const { queue, delay_ms, dedupe_key } = action as Extract<Action, { type: "enqueue" }>;
  const head = {
    queue,
    function_id,
    messageReceiptId: core.uuid(),
    traceparent: traceparent ?? null,
    baggage: baggage ?? null,
    origin: admission.origin,
    ...(delay_ms === undefined ? {} : { delay_ms }),
    ...(dedupe_key === undefined ? {} : { dedupe_key }),
  };
  return { ...request, function_id: ENQUEUE, payload: encodeFrame(head, "data", payload ?? NULL_PAYLOAD), action: undefined };
}

function start(core: Core, request: CallRequest, admission: Admission, out: Effect[]): void {
  if (core.functions.isBuiltin(request.function_id)) {
    run(core, request, admission, out);
    return;
  }
  const executor = executorOf(core, request);
  if ("code" in executor) refuse(request, executor, out);
  else dispatch(core, request, admission, executor, out);
}

/** The connection that serves the id and has room, or why there is none. */
function executorOf(core: Core, { function_id, lease }: CallRequest): Connection | ErrorBody {
  const owner = core.functions.serving(function_id);
  const executor = owner === undefined ? undefined : core.connections.get(owner.conn);
  if (executor === undefined) return notServed(function_id);
  const running = executor.running.size - executor.leases;
  if (lease === true || running < core.limits.max_in_flight) return executor;
  return error("too_many_in_flight", `the worker of '${function_id}' already runs ${running} calls`);
}

function dispatch(core: Core, request: CallRequest, admission: Admission, executor: Connection, out: Effect[]): void {
  const { function_id, caller, traceparent, metadata } = request;
  const invocation = record(core, request, admission, executor.id);
  startRunning(executor, invocation);
  const traced = traceparent !== undefined || request.baggage !== undefined;
  const baggage = traced ? withBaggage(request.baggage, "iii.function.id", function_id) : undefined;
  const context = contextOf(core, request, admission);
  const head = new CallHead({ invocation_id: invocation.id, function_id, traceparent, baggage, metadata, context });
  const splice = caller === null ? {} : { splice: { key: "_caller_worker_id", value: caller.id } };
  const payload = request.payload ?? NULL_PAYLOAD;
  out.push({ type: "send", conn: executor.id, from: caller?.id ?? null, head, payloadKey: "data", payload, ...splice });
}

function notServed(function_id: string): ErrorBody {
  if (function_id === ENQUEUE) return error("enqueue_error", "no queue provider is installed");
  return error("function_not_found", `nobody on the bus serves '${function_id}' now`);
}

function contextOf(core: Core, request: CallRequest, admission: Admission): CallContext {
  const { origin, deadline, now, depth, principal, session } = admission;
  const caller = request.caller?.id ?? "engine";
  const who = { principal, ...(session === undefined ? {} : { session_id: session }) };
  if (deadline === null) return { caller, origin, deadline_ms: null, remaining_ms: null, depth, ...who };
  const remaining_ms = Math.max(0, Math.round(deadline - now));
  return { caller, origin, deadline_ms: Math.round(core.dateOf(deadline)), remaining_ms, depth, ...who };
}

function run(core: Core, request: CallRequest, admission: Admission, out: Effect[]): void {
  const { function_id, payload, metadata, traceparent, baggage } = request;
  const { id } = record(core, request, admission, null);
  const { parent, direct, principal } = admission;
  const { by } = request;
  const context = contextOf(core, request, admission);
  const caller = request.caller?.id ?? null;
  out.push({
    type: "run",
    run: { id, function_id, payload, metadata, context, parent, traceparent, baggage, caller, direct, principal, by },
  });
}

function record(core: Core, request: CallRequest, admission: Admission, executor: string | null): Invocation {
  const { caller, client_id, function_id, traceparent, baggage } = request;
  const { origin, session, depth, deadline, parent, leased } = admission;
  const id = request.id ?? core.uuid();
  const about = { id, function_id, caller: caller?.id ?? null, client_id, executor };
  const trace = { traceparent, baggage };
  const lease = request.lease === true;
  const invocation: Invocation = { ...about, origin, session, depth, parent, ...trace, lease, leased, deadline, cancelled: false };
  core.invocations.add(invocation);
  if (caller !== null) startMaking(caller, invocation);
  return invocation;
}
