// Reads loose JSON field by field. What is missing is `undefined`; what is there in another form is told apart by the caller.
import { isTooDeep } from "@iii/sdk";

export type Fields = Readonly<Record<string, unknown>>;

export const record = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
export const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
/** Whether a field says nothing: many servers write what they leave out. */
export const absent = (value: unknown): value is undefined | null | "" => value === undefined || value === null || value === "";

/** A value as it may stand in a message about it. */
export function shown(value: unknown): string {
  if (isTooDeep(value)) return "a value that nests too deep";
  const json = JSON.stringify(value) ?? "nothing";
  return json.length > 300 ? `${json.slice(0, 300)}…` : json;
}
