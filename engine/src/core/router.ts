// Takes one frame of one connection and says what to do about it. Pure but for its own tables; never throws for what a peer sends.
import { type Action, decodeFrame } from "@iii/sdk/protocol";
import { answer, call, cancel } from "./calls.ts";
import type { Connection } from "./connection.ts";
import type { Core } from "./core.ts";
import type { Effect, Outcome } from "./effects.ts";
import { reattach } from "./lifecycle.ts";
import {
  registerFunction,
  registerTrigger,
  registerTriggerType,
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
  registerfunction: ({ core, conn, head, out }) => registerFunction(core, conn, head, out),
  unregisterfunction: ({ core, conn, head, out }) => unregisterFunction(core, conn, head, out),
  registertriggertype: ({ core, conn, head, out }) => registerTriggerType(core, conn, head, out),
  unregistertriggertype: ({ core, conn, head, out }) => unregisterTriggerType(core, conn, head, out),
  registertrigger: ({ core, conn, head, out }) => registerTrigger(core, conn, head, out),
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
    if (handler === undefined) warnOnce(conn, `frames of type '${type.slice(0, 64)}' are not known`, out);
    else handler({ core, conn, head, payload, now, out });
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : "the frame is unreadable";
    warnOnce(conn, message, out);
    answerUnreadable(conn, bytes, message, out);
  }
}

function warnOnce(conn: Connection, message: string, out: Effect[]): void {
  if (conn.warned) return;
  conn.warned = true;
  out.push({ type: "note", level: "warn", message, fields: { worker_id: conn.id, name: conn.announced?.name } });
}

/** A call that cannot be read but shows its id gets an answer instead of its caller's timeout. */
function answerUnreadable(conn: Connection, bytes: Uint8Array, message: string, out: Effect[]): void {
  const start = new TextDecoder().decode(bytes.subarray(0, 4_096));
  const id = /"invocation_id"\s*:\s*"([\x20\x21\x23-\x5b\x5d-\x7e]{1,128})"/.exec(start)?.[1];
  if (id !== undefined && /"type"\s*:\s*"invokefunction"/.test(start)) refuseFrame(conn, id, "", message, out);
}

function refuseFrame(conn: Connection, invocation_id: string, function_id: string, message: string, out: Effect[]): void {
  const head = { type: "invocationresult", invocation_id, function_id, error: { code: "invalid_frame", message } };
  out.push({ type: "send", conn: conn.id, from: conn.id, head });
}

function optionalText(head: Record<string, unknown>, key: string): string | undefined {
  const value = head[key];
  return typeof value === "string" ? value : undefined;
}

function optionalCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** The action as far as it is one; `undefined` for a plain call, an error text for an action that cannot be followed. */
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

const MAX_ID = 256;

function callTarget(head: Record<string, unknown>): string | undefined {
  const id = text(head, "function_id");
  return id !== undefined && id.length <= MAX_ID ? id : undefined;
}

function onInvoke({ core, conn, head, payload, now, out }: Incoming): void {
  const invocation_id = text(head, "invocation_id");
  const function_id = callTarget(head);
  const action = actionOf(head["action"]);
  if (function_id === undefined || typeof action === "string") {
    const wrong = typeof action === "string" ? action : `'function_id' must be text of 1 to ${MAX_ID} characters`;
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
  if (typeof error !== "object") return { error: { code: "invocation_failed", message: String(error) } };
  const { code, message } = error as Record<string, unknown>;
  return {
    error: {
      ...error,
      code: typeof code === "string" ? code : "invocation_failed",
      message: typeof message === "string" ? message : "no message",
    },
  };
}

function onResult({ core, conn, head, payload, out }: Incoming): void {
  const id = text(head, "invocation_id");
  if (id !== undefined) answer(core, conn, id, outcomeOf(head, payload), out);
}
