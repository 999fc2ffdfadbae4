// JSON text of values on their way to the store and back.
import { BusError, isTooDeep, MAX_DEPTH, messageOf } from "@iii/sdk";
import type { Row } from "../../ports/store.ts";
import { tooDeep } from "../depth.ts";

/** The JSON text of a value; undefined counts as null. @throws BusError `payload_too_deep`. */
export function jsonText(value: unknown, what: string): string {
  const text = write(value);
  // Each level takes two characters.
  if (text === undefined || (text.length > 2 * MAX_DEPTH && isTooDeep(value))) {
    throw tooDeep(what);
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

export function corrupt({ space, key }: Pick<Row, "space" | "key">, reason: string): BusError {
  return new BusError("store_corrupt", `the row ${space}/${key} cannot be read: ${reason}`, { details: { space, key } });
}

/** What a row holds. `check` says what is wrong with it, if anything. @throws BusError `store_corrupt` naming the row. */
export function decode<T>(row: Row, check: (value: unknown) => string | undefined): T {
  let value: unknown;
  try {
    value = JSON.parse(row.value);
  } catch (thrown) {
    throw corrupt(row, messageOf(thrown));
  }
  const problem = check(value);
  if (problem !== undefined) throw corrupt(row, problem);
  return value as T;
}

/** Reads rows one by one: one that cannot be read goes to `bad`, and the others are there. */
export function readable<T>(rows: readonly Row[], read: (row: Row) => T, bad: (row: Row, error: BusError) => void): T[] {
  return rows.flatMap((row) => {
    try {
      return [read(row)];
    } catch (thrown) {
      bad(row, thrown instanceof BusError ? thrown : corrupt(row, messageOf(thrown)));
      return [];
    }
  });
}

/** What numbers and values a row `{"r":…,"c":…,"v":…}` must have. Undefined: it has them. */
export function numbered(value: unknown, numbers: readonly string[]): string | undefined {
  if (typeof value !== "object" || value === null) return "it is no object";
  if (!("v" in value)) return "'v' is missing";
  const wrong = numbers.find((name) => !Number.isSafeInteger((value as Record<string, unknown>)[name]));
  return wrong === undefined ? undefined : `'${wrong}' is no whole number`;
}

/** Undefined: deeper than the stack. */
function write(value: unknown): string | undefined {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return undefined;
  }
}
