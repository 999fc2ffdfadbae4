// JSON text of values on their way to the store and back.
import { BusError } from "@iii/sdk";
import type { Row } from "../../ports/store.ts";

/** What is stored is written again inside of events and lists, from deeper stacks: far less than what a stack holds. */
const MAX_DEPTH = 1_000;

/** Whether a value nests more than `limit` levels. */
export function deeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (limit === 0) return true;
  return Object.values(value).some((inner) => deeperThan(inner, limit - 1));
}

/** The JSON text of a value; undefined counts as null. @throws BusError `serialization_error` when it nests too deep to be written. */
export function jsonText(value: unknown, what: string): string {
  const text = write(value);
  // Each level takes two characters.
  if (text === undefined || (text.length > 2 * MAX_DEPTH && deeperThan(value, MAX_DEPTH))) {
    throw new BusError("serialization_error", `${what} cannot be written as JSON: it nests deeper than ${MAX_DEPTH} levels`);
  }
  return text;
}

/** The same for a value that is kept and sent again as a whole. @throws BusError `VALUE_TOO_LARGE` past `limit` bytes. */
export function valueText(value: unknown, what: string, limit: number): string {
  const text = jsonText(value, what);
  const bytes = text.length * 3 <= limit ? 0 : Buffer.byteLength(text);
  if (bytes <= limit) return text;
  throw new BusError("VALUE_TOO_LARGE", `${what} has ${bytes} bytes; ${limit} are allowed`, { details: { bytes, limit } });
}

/** What a row holds. @throws BusError `store_corrupt` naming the row. */
export function decode<T>({ space, key, value }: Row): T {
  try {
    return JSON.parse(value) as T;
  } catch (cause) {
    throw new BusError("store_corrupt", `the row ${space}/${key} cannot be read`, { cause });
  }
}

/** Undefined: deeper than the stack. */
function write(value: unknown): string | undefined {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return undefined;
  }
}
