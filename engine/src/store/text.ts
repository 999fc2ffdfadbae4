// JSON text of values on their way to the store.
import { BusError } from "@iii/sdk";

/** The JSON text of a value; undefined counts as null. @throws BusError `serialization_error` when it nests too deep to be written. */
export function jsonText(value: unknown, what: string): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (cause) {
    throw new BusError("serialization_error", `${what} cannot be written as JSON: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  }
}
