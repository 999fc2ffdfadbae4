// Takes one frame of one connection and says what to do about it. Pure but for its own tables; never throws for what a peer sends.
import { type ErrorBody, issueText } from "@iii/sdk";
import { decodeFrame, FRAMES, type FrameOf, type FrameType, isFrameType, readInvoke, readResult } from "@iii/sdk/protocol";
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
  triggerResult,
  unregisterFunction,
  unregisterTrigger,
  unregisterTriggerType,
} from "./registrations.ts";

type Head = Readonly<Record<string, unknown>>;

interface Incoming {
  readonly core: Core;
  readonly conn: Connection;
  readonly head: Head;
  readonly payload: Uint8Array | undefined;
  readonly now: number;
  readonly out: Effect[];
}

/** What a frame of each type does, once its schema has read it. The two hot frames are read by hand; the others are for workers only. */
const COLD: { readonly [T in FrameType]?: (frame: FrameOf<T>, about: Incoming) => void } = {
  cancel: ({ invocation_id }, { core, conn, now, out }) => cancel(core, conn.calls.get(invocation_id), now, out),
  registerfunction: (frame, { core, conn, now, out }) => registerFunction(core, conn, frame, now, out),
  unregisterfunction: ({ id }, { core, conn, out }) => unregisterFunction(core, conn, id, out),
  registertriggertype: (frame, { core, conn, now, out }) => registerTriggerType(core, conn, frame, now, out),
  unregistertriggertype: ({ id }, { core, conn, out }) => unregisterTriggerType(core, conn, id, out),
  registertrigger: (frame, { core, conn, now, out }) => registerTrigger(core, conn, frame, now, out),
  unregistertrigger: ({ id }, { core, conn, out }) => void unregisterTrigger(core, conn, id, out),
  triggerregistrationresult: (frame, { core, conn, out }) => triggerResult(core, conn, frame, out),
  reattach: (frame, { core, conn, out }) => reattach(core, conn, frame, out),
  ping: (_frame, { conn, out }) => void out.push({ type: "send", conn: conn.id, from: conn.id, head: { type: "pong" } }),
  pong: () => {},
  registerservice: () => {},
};

/** Routes one frame. Unreadable and unknown ones are noted once per connection and cost nothing else. */
export function route(core: Core, conn: Connection, bytes: Uint8Array, now: number, out: Effect[]): void {
  try {
    const { head, payload } = decodeFrame(bytes);
    const { type } = head;
    const refused = isFrameType(type) ? headFault(type, head, bytes.length - (payload?.length ?? 0)) : undefined;
    const about = { core, conn, head, payload, now, out };
    if (refused !== undefined) refuseHead(about, type as FrameType, refused);
    else if (type === "invokefunction") onInvoke(about);
    else if (type === "invocationresult") onResult(about);
    else if (!isFrameType(type) || !onCold(type, about)) noteUnknown(about);
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : "the frame is unreadable";
    noteRefusal(conn, now, message, {}, out);
    answerUnreadable(conn, bytes, message, out);
  }
}

/** False for what workers do not send. */
function onCold<T extends FrameType>(type: T, about: Incoming): boolean {
  const handler = COLD[type];
  if (handler === undefined) return false;
  const frame = FRAMES[type].safeParse(about.head);
  if (frame.success) handler(frame.data as FrameOf<T>, about);
  else refuseHead(about, type, malformed(type, about.head));
  return true;
}

function noteUnknown({ conn, head, now, out }: Incoming): void {
  noteRefusal(conn, now, `frames of type '${printable(text(head, "type").slice(0, 64))}' are not known`, {}, out);
}

/** What the schema finds wrong in a head that it refuses. */
function malformed(type: FrameType, head: Head): ErrorBody {
  const { error } = FRAMES[type].safeParse(head);
  const message = error === undefined ? "it is malformed" : issueText(error, "the frame");
  return { code: type === "registertrigger" ? "trigger_registration_failed" : "invalid_frame", message };
}

const text = (head: Head, key: string): string => {
  const value = head[key];
  return typeof value === "string" ? value : "";
};

/** A head that is refused is said to whoever waits for an answer, and noted. */
function refuseHead({ conn, head, now, out }: Incoming, type: FrameType, error: ErrorBody): void {
  const id = text(head, type === "registertrigger" ? "id" : "invocation_id");
  const function_id = text(head, "function_id");
  const shown = printable(type === "registerfunction" ? text(head, "id") : function_id);
  noteRefusal(conn, now, `a frame of type '${type}' was refused: ${error.message}`, { code: error.code, function_id: shown }, out);
  if (id === "") return;
  if (type === "invokefunction") answerError(conn, id, function_id, error, out);
  if (type === "registertrigger") sendRefusal(conn.id, { id, trigger_type: text(head, "trigger_type"), function_id }, error, out);
}

/** A call that cannot be read but shows its id gets an answer instead of its caller's timeout. */
function answerUnreadable(conn: Connection, bytes: Uint8Array, message: string, out: Effect[]): void {
  const start = new TextDecoder().decode(bytes.subarray(0, 4_096));
  const id = /"invocation_id"\s*:\s*"([\x20\x21\x23-\x5b\x5d-\x7e]{1,128})"/.exec(start)?.[1];
  if (id !== undefined && /"type"\s*:\s*"invokefunction"/.test(start)) answerError(conn, id, "", { code: "invalid_frame", message }, out);
}

function answerError(conn: Connection, invocation_id: string, function_id: string, error: ErrorBody, out: Effect[]): void {
  const head = { type: "invocationresult", invocation_id, function_id: function_id.slice(0, BOUNDS.name), error };
  out.push({ type: "send", conn: conn.id, from: conn.id, head });
}

function onInvoke(about: Incoming): void {
  const { core, conn, head, payload, now, out } = about;
  const read = readInvoke(head);
  if (read === undefined) {
    refuseHead(about, "invokefunction", malformed("invokefunction", head));
    return;
  }
  const { invocation_id, function_id, traceparent, baggage, action, metadata, timeout_ms, parent, origin, session_id } = read;
  call(
    core,
    {
      caller: conn,
      client_id: action?.type === "void" ? undefined : invocation_id,
      function_id,
      payload,
      metadata: metadata ?? undefined,
      traceparent,
      baggage,
      action,
      timeout_ms,
      parent,
      marked: origin === "agent",
      session: session_id,
    },
    now,
    out,
  );
}

function isNull(payload: Uint8Array): boolean {
  return payload.length === 4 && payload[0] === 0x6e;
}

/** An executor's outcome: an error wins, and a null result is no result. */
function outcomeOf(error: unknown, payload: Uint8Array | undefined): Outcome {
  if (error === undefined || error === null) return payload === undefined || isNull(payload) ? {} : { payload };
  return { error: boundedError(typeof error === "object" ? (error as Head) : { message: String(error) }) };
}

function onResult(about: Incoming): void {
  const { core, conn, head, payload, out } = about;
  const read = readResult(head);
  if (read === undefined) refuseHead(about, "invocationresult", malformed("invocationresult", head));
  else answer(core, conn, read.invocation_id, outcomeOf(read.error, payload), out);
}
