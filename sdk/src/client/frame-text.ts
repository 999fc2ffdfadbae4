// Frames to and from text. The payload goes last: the engine routes by the keys before it and copies the rest through.
import { isTooDeep, MAX_DEPTH } from "../depth.ts";
import { BusError, messageOf, toWire } from "../errors.ts";
import type { Logger } from "../log-port.ts";
import { readEnvelope } from "../protocol/envelope.ts";
import type { Frame, FrameOf } from "../protocol/frames.ts";
import { headText, ResultHead } from "../protocol/heads.ts";
import { decodeAnyway } from "../protocol/utf8.ts";

/** @throws BusError `payload_too_deep` when the text could not be built for depth, `serialization_error` for what else JSON cannot carry. */
function written<T>(write: () => T, value: unknown, what: string): T {
  try {
    return write();
  } catch (cause) {
    if (cause instanceof RangeError && isTooDeep(value)) {
      throw new BusError("payload_too_deep", `${what} nests deeper than ${MAX_DEPTH} levels`, { cause, details: { limit: MAX_DEPTH } });
    }
    throw new BusError("serialization_error", `${what} is not JSON: ${messageOf(cause)}`, { cause });
  }
}

/**
 * A value as JSON text; undefined stays undefined.
 * @throws BusError `serialization_error` or `payload_too_deep` for what JSON cannot carry.
 */
export function toJson(value: unknown, what: string): string | undefined {
  if (value === undefined) return undefined;
  const text = written(() => JSON.stringify(value) as string | undefined, value, what);
  if (text === undefined) throw new BusError("serialization_error", `${what} is a ${typeof value}, which JSON cannot carry`);
  return text;
}

/**
 * One frame: the keys of `head`, then the payload's JSON text under `key`.
 * @throws BusError `serialization_error` or `payload_too_deep` for a head that cannot be written: metadata, a schema, a trigger's config.
 */
export function frameText(head: object, key?: "data" | "result", json?: string): string {
  const text = written(() => headText(head), head, "the message");
  return key === undefined || json === undefined ? text : `${text.slice(0, -1)},"${key}":${json}}`;
}

const encoder = new TextEncoder();

/** @throws BusError `payload_too_large` for a frame that would cost the connection, and with it every other call on it. */
export function checkSize(text: string, limit: number | undefined, what: string): void {
  if (limit === undefined || text.length * 3 <= limit) return;
  const bytes = encoder.encode(text).byteLength;
  if (bytes <= limit) return;
  const message = `${what} makes a message of ${bytes} bytes; the engine takes ${limit} (engine.limits.max_frame_bytes)`;
  throw new BusError("payload_too_large", message, { details: { bytes, limit } });
}

/** An answer as one frame; a result that is too large for the engine becomes an error. */
export function answerText(head: ResultHead, json: string | undefined, limit: number | undefined): string {
  const text = frameText(head, "result", json);
  try {
    checkSize(text, limit, "the result");
    return text;
  } catch (thrown) {
    return frameText(new ResultHead({ ...head, error: toWire(thrown) }));
  }
}

/**
 * A frame as it arrived; what is no JSON object is logged and ignored. When only its payload cannot be read, the one call that it
 * belongs to ends: a result becomes an error, an invocation is answered by `refuse`.
 */
export function parseFrame(data: Uint8Array, log: Logger, refuse: (answer: FrameOf<"invocationresult">) => void): Frame | undefined {
  try {
    const frame = JSON.parse(decodeAnyway(data)) as Frame;
    return typeof frame === "object" && frame !== null ? frame : undefined;
  } catch (cause) {
    log.warn({ err: cause, bytes: data.byteLength }, "a frame that is not JSON was ignored");
    const head = readableHead(data);
    const answer = head === undefined ? undefined : unreadable(head);
    if (head?.type !== "invokefunction") return answer;
    if (answer !== undefined) refuse(answer);
    return undefined;
  }
}

function readableHead(data: Uint8Array): Frame | undefined {
  try {
    return readEnvelope(data).head as { type?: unknown } as Frame;
  } catch {
    return undefined; // the envelope is broken too: nobody knows whose call it was
  }
}

/** The end of a call whose payload is no JSON; undefined when nobody waits for it. */
function unreadable(head: Frame): FrameOf<"invocationresult"> | undefined {
  if ((head.type !== "invokefunction" && head.type !== "invocationresult") || head.invocation_id === undefined) return undefined;
  const { invocation_id, function_id } = head;
  const what = head.type === "invokefunction" ? "payload" : "result";
  const error = { code: "deserialization_error", message: `the ${what} of '${function_id}' is not JSON; send valid JSON` };
  return { type: "invocationresult", invocation_id, function_id, error };
}

/** A handler's answer that is still to come. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
