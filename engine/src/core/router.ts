// Takes one frame of one connection and says what to do about it. Pure but for its own tables; never throws for what a peer sends.
import type { ErrorBody } from "@iii/sdk";
import { type Action, decodeFrame } from "@iii/sdk/protocol";
import { BOUNDS, boundedError, headFault, printable } from "./bounds.ts";
import { call } from "./calls.ts";
import type { Connection } from "./connection.ts";
import type { Core } from "./core.ts";
import type { Effect, Outcome } from "./effects.ts";
import { answer, cancel } from "./endings.ts";
import { reattach } from "./lifecycle.ts";
import { noteRefusal } from "./notes.ts";
import {
  registerFunction,
  registerTrigger,
  registerTriggerType,
  sendRefusal,
  text,
  triggerResult,
  unregisterFunction,
  unregisterTrigger,
  unregisterTriggerType,
} from "./registrations.ts";

interface Incoming {
  readonly core: Core;
  readonly conn: Connection;
  readonly head: Record<string, unknown>;
  readonly payload: Uint8Array | undefined;
  readonly now: number;
  readonly out: Effect[];
}

const HANDLERS: Readonly<Record<string, ((frame: Incoming) => void) | undefined>> = {
  invokefunction: onInvoke,
  invocationresult: onResult,
  cancel: ({ core, conn, head, now, out }) => cancel(core, conn.calls.get(text(head, "invocation_id") ?? ""), now, out),
  registerfunction: ({ core, conn, head, now, out }) => registerFunction(core, conn, head, now, out),
  unregisterfunction: ({ core, conn, head, out }) => unregisterFunction(core, conn, head, out),
  registertriggertype: ({ core, conn, head, now, out }) => registerTriggerType(core, conn, head, now, out),
  unregistertriggertype: ({ core, conn, head, out }) => unregisterTriggerType(core, conn, head, out),
  registertrigger: ({ core, conn, head, now, out }) => registerTrigger(core, conn, head, now, out),
  unregistertrigger: ({ core, conn, head, out }) => void unregisterTrigger(core, conn, text(head, "id"), out),
  triggerregistrationresult: ({ core, conn, head, out }) => triggerResult(core, conn, head, out),
  reattach: ({ core, conn, head, out }) => reattach(core, conn, head, out),
  ping: ({ conn, out }) => void out.push({ type: "send", conn: conn.id, from: conn.id, head: { type: "pong" } }),
  pong: () => {},
  registerservice: () => {},
};

/** Routes one frame. Unreadable and unknown ones are noted once per connection and cost nothing else. */
export function route(core: Core, conn: Connection, bytes: Uint8Array, now: number, out: Effect[]): void {
  try {
    const { head, payload } = decodeFrame(bytes);
    const type = text(head, "type") ?? "";
    const handler = Object.hasOwn(HANDLERS, type) ? HANDLERS[type] : undefined;
    const refused = handler === undefined ? undefined : headFault(type, head, bytes.length - (payload?.length ?? 0));
    const frame = { core, conn, head, payload, now, out };
    if (handler === undefined) noteRefusal(conn, now, `frames of type '${printable(type.slice(0, 64))}' are not known`, {}, out);
    else if (refused === undefined) handler(frame);
    else refuseHead(frame, type, refused);
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : "the frame is unreadable";
    noteRefusal(conn, now, message, {}, out);
    answerUnreadable(conn, bytes, message, out);
  }
}

/** A head that carries too much is said to whoever waits for an answer, and noted. */
function refuseHead({ conn, head, now, out }: Incoming, type: string, error: ErrorBody): void {
  const id = text(head, type === "registertrigger" ? "id" : "invocation_id");
  const function_id = text(head, "function_id") ?? "";
  const shown = printable(type === "registerfunction" ? (text(head, "id") ?? "") : function_id);
  noteRefusal(conn, now, `a frame of type '${type}' was refused: ${error.message}`, { code: error.code, function_id: shown }, out);
  if (id === undefined) return;
  if (type === "invokefunction") answerError(conn, id, function_id, error, out);
  if (type === "registertrigger") sendRefusal(conn.id, { id, trigger_type: text(head, "trigger_type") ?? "", function_id }, error, out);
}

/** A call that cannot be read but shows its id gets an answer instead of its caller's timeout. */
function answerUnreadable(conn: Connection, bytes: Uint8Array, message: string, out: Effect[]): void {
  const start = new TextDecoder().decode(bytes.subarray(0, 4_096));
  const id = /"invocation_id"\s*:\s*"([\x20\x21\x23-\x5b\x5d-\x7e]{1,128})"/.exec(start)?.[1];
  if (id !== undefined && /"type"\s*:\s*"invokefunction"/.test(start)) refuseFrame(conn, id, "", message, out);
}

function answerError(conn: Connection, invocation_id: string, function_id: string, error: ErrorBody, out: Effect[]): void {
  const head = { type: "invocationresult", invocation_id, function_id: function_id.slice(0, BOUNDS.name), error };
  out.push({ type: "send", conn: conn.id, from: conn.id, head });
}

function refuseFrame(conn: Connection, invocation_id: string, function_id: string, message: string, out: Effect[]): void {
  answerError(conn, invocation_id, function_id, { code: "invalid_frame", message }, out);
}

function optionalText(head: Record<string, unknown>, key: string): string | undefined {
  const value = head[key];
  return typeof value === "string" ? value : undefined;
}

function optionalCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Parses `action`: undefined for a plain call, or the reason it is invalid. */
function actionOf(value: unknown): Action | string | undefined {
  if (value === undefined || value === null) return undefined;
  const { type, queue, delay_ms, dedupe_key } = value as Record<string, unknown>;
  if (type === "void") return { type };
  if (type !== "enqueue") return "'action.type' must be 'void' or 'enqueue'";
  if (typeof queue !== "string") return "'action.queue' must be text";
  const delay = optionalCount(delay_ms);
  return {
    type,
    queue,
    ...(delay === undefined ? {} : { delay_ms: delay }),
    ...(typeof dedupe_key === "string" ? { dedupe_key } : {}),
  };
}

function callTarget(head: Record<string, unknown>): string | undefined {
  const id = text(head, "function_id");
  return id !== undefined && id.length <= BOUNDS.name ? id : undefined;
}

function onInvoke({ core, conn, head, payload, now, out }: Incoming): void {
  const invocation_id = text(head, "invocation_id");
  const function_id = callTarget(head);
  const action = actionOf(head["action"]);
  if (function_id === undefined || typeof action === "string") {
    const wrong = typeof action === "string" ? action : `'function_id' must be text of 1 to ${BOUNDS.name} characters`;
    if (invocation_id !== undefined) refuseFrame(conn, invocation_id, function_id ?? "", wrong, out);
    return;
  }
  call(
    core,
    {
      caller: conn,
      client_id: action?.type === "void" ? undefined : invocation_id,
      function_id,
      payload,
      metadata: head["metadata"] ?? undefined,
      traceparent: optionalText(head, "traceparent"),
      baggage: optionalText(head, "baggage"),
      action,
      timeout_ms: optionalCount(head["timeout_ms"]),
      parent: text(head, "parent"),
      marked: head["origin"] === "agent",
      session: text(head, "session_id"),
    },
    now,
    out,
  );
}

function isNull(payload: Uint8Array): boolean {
  return payload.length === 4 && payload[0] === 0x6e;
}

/** An executor's outcome: an error wins, and a null result is no result. */
function outcomeOf(head: Record<string, unknown>, payload: Uint8Array | undefined): Outcome {
  const { error } = head;
  if (error === undefined || error === null) return payload === undefined || isNull(payload) ? {} : { payload };
  if (typeof error !== "object") return { error: boundedError({ message: String(error) }) };
  return { error: boundedError(error as Record<string, unknown>) };
}

function onResult({ core, conn, head, payload, out }: Incoming): void {
  const id = text(head, "invocation_id");
  if (id !== undefined) answer(core, conn, id, outcomeOf(head, payload), out);
}
