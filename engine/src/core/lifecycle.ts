// How connections come and go: registration, reattachment, and the clean-up that runs once for each.

import type { FrameOf, Principal } from "@iii/sdk/protocol";
import { type Announcement, type Connection, newConnection } from "./connection.ts";
import type { Core } from "./core.ts";
import type { Effect } from "./effects.ts";
import { stopCallsOf } from "./endings.ts";
import { Mark } from "./marks.ts";

interface Arrival {
  readonly kind: "worker" | "browser";
  readonly remote: string | undefined;
  readonly principal: Principal;
}

/** Whose mark a new connection takes: its entry's, its own, or none for the control plane, whose calls for others are not its own. */
function markOf(core: Core, principal: Principal): Mark | undefined {
  if (core.access.isControlPlane(principal)) return undefined;
  return principal.kind === "entry" ? core.marks.ofEntry(principal.name) : new Mark();
}

export function connect(core: Core, about: Arrival, now: number, out: Effect[]): string {
  const id = core.uuid();
  const token = core.uuid();
  core.connections.set(id, newConnection({ id, token, ...about, connected_at: now, mark: markOf(core, about.principal) }));
  const { max_frame_bytes } = core.limits;
  const head = { type: "workerregistered", worker_id: id, reattach_token: token, max_frame_bytes };
  out.push({ type: "send", conn: id, from: null, head });
  out.push({ type: "worker", event: "worker_connected", worker_id: id });
  return id;
}

/** Everything the connection held is given back, exactly once. */
export function disconnect(core: Core, id: string, out: Effect[]): void {
  const conn = core.connections.get(id);
  if (conn === undefined) return;
  core.connections.delete(id);
  const added: string[] = [];
  const removed: string[] = [];
  for (const function_id of conn.functions) {
    const left = core.functions.release(id, function_id);
    if (left === "moved") added.push(function_id);
    if (left === "removed") removed.push(function_id);
  }
  stopCallsOf(core, conn, out);
  if (conn.mark !== undefined && conn.principal.kind !== "entry") core.marks.left(id, conn.token, conn.mark, core.now());
  for (const binding of conn.bindings) core.triggers.unbind(binding, out);
  for (const type of conn.types) core.triggers.unprovide(id, type, out);
  if (added.length + removed.length > 0) out.push({ type: "functions", added, removed });
  out.push({ type: "worker", event: "worker_disconnected", worker_id: id });
}

/** A client is back: its old connection, if it still stands, goes first. A wrong claim is ignored without an answer. */
export function reattach(core: Core, conn: Connection, frame: FrameOf<"reattach">, out: Effect[]): void {
  const { previous_worker_id, reattach_token } = frame;
  takeMark(core, conn, previous_worker_id, reattach_token);
  const old = core.connections.get(previous_worker_id);
  if (old === undefined || old.id === conn.id || old.token !== reattach_token) {
    out.push({ type: "note", level: "debug", message: "a reattach matched no live connection", fields: { worker_id: conn.id } });
    return;
  }
  disconnect(core, old.id, out);
  out.push({ type: "drop", conn: old.id, reason: "reattached" });
}

/** What a client did for an agent before it broke off still binds it. A mark that it holds already is not changed for another one. */
function takeMark(core: Core, conn: Connection, previous: string, token: string): void {
  if (conn.mark === undefined || conn.principal.kind === "entry" || conn.mark.at(core.now()) !== undefined) return;
  const old = core.connections.get(previous);
  const standing = old !== undefined && old.id !== conn.id && old.token === token ? old.mark : undefined;
  conn.mark = standing ?? core.marks.taken(previous, token) ?? conn.mark;
}

export function announce(core: Core, id: string, announcement: Announcement, out: Effect[]): boolean {
  const conn = core.connections.get(id);
  if (conn === undefined) return false;
  conn.announced = announcement;
  out.push({ type: "worker", event: "worker_metadata_updated", worker_id: id });
  return true;
}
