// Frames to and from text. The payload goes last: the engine routes by the keys before it and copies the rest through.
import { BusError } from "../errors.ts";
import type { Logger } from "../log-port.ts";
import type { Frame } from "../protocol/frames.ts";

/**
 * A value as JSON text; undefined stays undefined.
 * @throws BusError `serialization_error` for what JSON cannot carry.
 */
export function toJson(value: unknown, what: string): string | undefined {
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BusError("serialization_error", `${what} is not JSON: ${reason}`, { cause });
  }
  if (text === undefined) throw new BusError("serialization_error", `${what} is a ${typeof value}, which JSON cannot carry`);
  return text;
}

/** One frame: the keys of `head`, then the payload's JSON text under `key`. */
export function frameText(head: object, key?: "data" | "result", json?: string): string {
  const text = JSON.stringify(head);
  return key === undefined || json === undefined ? text : `${text.slice(0, -1)},"${key}":${json}}`;
}

const decoder = new TextDecoder();

/** A frame as it arrived; what is no JSON object is logged and ignored. */
export function parseFrame(data: Uint8Array, log: Logger): Frame | undefined {
  try {
    const frame = JSON.parse(decoder.decode(data)) as Frame;
    return typeof frame === "object" && frame !== null ? frame : undefined;
  } catch (cause) {
    log.warn({ err: cause, bytes: data.byteLength }, "a frame that is not JSON was ignored");
    return undefined;
  }
}

/** A handler's answer that is still to come. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
