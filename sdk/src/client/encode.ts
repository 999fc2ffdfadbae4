// Frames as text. The payload goes last: the engine routes by the keys before it and copies the rest through.
import { BusError } from "../errors.ts";

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
