// What workers register: functions, trigger types and bindings. Refusals answer where the protocol has an answer, else they are noted.
import type { ErrorBody } from "@iii/sdk";
import { type FrameOf, FunctionId } from "@iii/sdk/protocol";
import { boundedError, printable } from "./bounds.ts";
import type { Connection } from "./connection.ts";
import type { Core } from "./core.ts";
import type { BindingData, Effect } from "./effects.ts";
import { noteRefusal } from "./notes.ts";

type RegisterFunction = FrameOf<"registerfunction">;

function note(message: string, fields: Record<string, unknown>): Effect {
  return { type: "note", level: "warn", message, fields };
}

/** Why this connection may not register this function, if so: what stands in the note. */
function functionObjection(core: Core, conn: Connection, frame: RegisterFunction): { message: string; code: string } | undefined {
  const id = FunctionId.safeParse(frame.id);
  if (!id.success) return { code: "id_invalid", message: "a function with an unusable id was not registered" };
  if (frame.invocation !== undefined && frame.invocation !== null) {
    return {
      code: "function_not_invokable",
      message: "a function that is called by HTTP was not registered: this engine calls workers only",
    };
  }
  const refused = core.access.refuseClaim(id.data, conn.principal, conn.kind);
  if (refused !== undefined) return refused;
  if (conn.functions.has(id.data) || conn.functions.size < core.limits.max_functions) return undefined;
  return { code: "quota_exceeded", message: "the connection has too many functions" };
}

export function registerFunction(core: Core, conn: Connection, frame: RegisterFunction, now: number, out: Effect[]): void {
  const refused = functionObjection(core, conn, frame);
  const { id: function_id, description, metadata, request_format, response_format } = frame;
  if (refused !== undefined) {
    const { code, message } = refused;
    noteRefusal(conn, now, message, { function_id: printable(function_id), code }, out);
    return;
  }
  const claim = core.functions.claim(conn.id, { id: function_id, description, metadata, request_format, response_format });
  conn.functions.add(function_id);
  if (claim === "taken") {
    noteRefusal(conn, now, "a built-in function id cannot be claimed", { function_id, code: "function_owned" }, out);
    return;
  }
  out.push({ type: "functions", added: [function_id], removed: [] });
}

export function unregisterFunction(core: Core, conn: Connection, id: string, out: Effect[]): void {
  if (!conn.functions.delete(id)) return;
  const left = core.functions.release(conn.id, id);
  if (left === "removed") out.push({ type: "functions", added: [], removed: [id] });
  if (left === "moved") out.push({ type: "functions", added: [id], removed: [] });
}

export function registerTriggerType(core: Core, conn: Connection, frame: FrameOf<"registertriggertype">, now: number, out: Effect[]): void {
  const { id, description = "", trigger_request_format, call_request_format } = frame;
  const refused = core.access.refuseClaim(id, conn.principal, conn.kind);
  if (refused !== undefined) {
    noteRefusal(conn, now, refused.message, { trigger_type: printable(id), code: refused.code }, out);
    return;
  }
  if (!conn.types.has(id) && conn.types.size >= core.limits.max_triggers) {
    noteRefusal(conn, now, "the connection has too many trigger types", { trigger_type: id, code: "quota_exceeded" }, out);
    return;
  }
  const info = { id, description, trigger_request_format, call_request_format };
  if (core.triggers.provide(conn.id, info, out)) conn.types.add(id);
  else noteRefusal(conn, now, "a built-in trigger type cannot be claimed", { trigger_type: id }, out);
}

export function unregisterTriggerType(core: Core, conn: Connection, id: string, out: Effect[]): void {
  if (conn.types.delete(id)) core.triggers.unprovide(conn.id, id, out);
}

export function sendRefusal(
  conn: string,
  about: { id: string; trigger_type: string; function_id: string },
  error: ErrorBody,
  out: Effect[],
): void {
  const { id, trigger_type, function_id } = about;
  const head = { type: "triggerregistrationresult", id, trigger_type, function_id, error };
  out.push({ type: "send", conn, from: null, head });
}

/** Why this connection may not bind this trigger, if so. */
function bindingObjection(core: Core, conn: Connection, wanted: BindingData): ErrorBody | undefined {
  const held = core.triggers.get(wanted.id);
  if (held !== undefined && held.worker_id !== conn.id) {
    const same = held.trigger_type === wanted.trigger_type && held.function_id === wanted.function_id;
    if (!same) return { code: "trigger_registration_failed", message: `the trigger id '${wanted.id}' belongs to another connection` };
  }
  if (held === undefined && conn.bindings.size >= core.limits.max_triggers) {
    return { code: "quota_exceeded", message: `a connection may hold ${core.limits.max_triggers} triggers` };
  }
  const held_mark = conn.mark?.at(core.now());
  const { kind, principal } = conn;
  const origin = held_mark === undefined ? kind : "agent";
  return core.access.refuseBinding(wanted, { origin, direct: false, kind, principal, session: held_mark?.session });
}

export function registerTrigger(core: Core, conn: Connection, frame: FrameOf<"registertrigger">, now: number, out: Effect[]): void {
  const { id, trigger_type, function_id, config = null, metadata } = frame;
  const binding: BindingData = { id, trigger_type, function_id, config, metadata, worker_id: conn.id, principal: conn.principal };
  const refused = bindingObjection(core, conn, binding);
  if (refused !== undefined) {
    sendRefusal(conn.id, binding, refused, out);
    return;
  }
  const held = core.triggers.get(id)?.worker_id;
  if (typeof held === "string" && held !== conn.id) core.connections.get(held)?.bindings.delete(id);
  conn.bindings.add(id);
  core.triggers.bind(binding, out);
  if (core.triggers.isProvided(trigger_type)) return;
  const about = { trigger_id: id, trigger_type, function_id, code: "trigger_type_not_found" };
  noteRefusal(conn, now, "a trigger waits: nobody on the bus provides its type now", about, out);
}

/** Removes a binding that the connection owns, or that nobody owns. */
export function unregisterTrigger(core: Core, conn: Connection, id: string, out: Effect[]): boolean {
  const held = core.triggers.get(id);
  if (held === undefined) return false;
  if (held.worker_id !== null && held.worker_id !== conn.id) {
    out.push(note("a trigger of another connection was not unregistered", { worker_id: conn.id, trigger_id: id }));
    return false;
  }
  conn.bindings.delete(id);
  core.triggers.unbind(id, out);
  return true;
}

/** A provider says how a registration went. Only the type's provider is believed; a refusal goes on to who asked. */
export function triggerResult(core: Core, conn: Connection, frame: FrameOf<"triggerregistrationresult">, out: Effect[]): void {
  const { id, error } = frame;
  const binding = core.triggers.get(id);
  if (binding === undefined || error === undefined || error === null) return;
  if (core.triggers.provider(binding.trigger_type)?.conn !== conn.id) return;
  core.triggers.park(binding.id);
  const body = boundedError(typeof error === "object" ? (error as Record<string, unknown>) : { message: String(error) });
  if (binding.worker_id !== null) sendRefusal(binding.worker_id, binding, body, out);
}

/** A built-in type refused a binding: it is forgotten and its owner is told. */
export function bindRefused(core: Core, binding: BindingData, error: ErrorBody, out: Effect[]): void {
  core.triggers.drop(binding.id);
  if (binding.worker_id === null) return;
  core.connections.get(binding.worker_id)?.bindings.delete(binding.id);
  sendRefusal(binding.worker_id, binding, error, out);
}
