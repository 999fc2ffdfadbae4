// The ids that a trace is grouped by, found in a call's input or its baggage.
import type { Baggage } from "./baggage.ts";

const ID = /^[\x20-\x7e]{1,128}$/;

function field(value: unknown, name: string): string | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  const found = (value as Record<string, unknown>)[name];
  return typeof found === "string" && ID.test(found) ? found : undefined;
}

function inside(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

interface Ids {
  session: string | undefined;
  message: string | undefined;
}

const read = (value: unknown): Ids => ({ session: field(value, "session_id"), message: field(value, "message_id") });

/**
 * `iii.session.id`, `iii.message.id` and `iii.function.id` of a call: from its input, else from an HTTP body, else from its baggage.
 * A call that names a session and no message, outside of a turn, is somebody's own look at the session and none of its traces: it
 * carries `iii.about.session.id`.
 */
export function callAttributes(function_id: string, input: unknown, baggage: Baggage): Record<string, string> {
  const body = inside(input, "body");
  const own = read(input);
  const near = read(body);
  let session = own.session ?? near.session;
  let message = own.message ?? near.message;
  if (session === undefined && message === undefined) {
    const wrapped = read(inside(body, "payload"));
    const payload = read(inside(input, "payload"));
    session = wrapped.session ?? payload.session;
    message = wrapped.message ?? payload.message;
  }
  const turn = baggage["iii.session.id"];
  const of = message === undefined ? turn : (session ?? turn);
  message ??= baggage["iii.message.id"];
  return {
    ...(of === undefined ? {} : { "iii.session.id": of }),
    ...(of !== undefined || session === undefined ? {} : { "iii.about.session.id": session }),
    ...(message === undefined ? {} : { "iii.message.id": message }),
    "iii.function.id": function_id,
  };
}
