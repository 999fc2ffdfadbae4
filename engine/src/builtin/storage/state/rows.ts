// Typed rows of one scope, for workers that keep state: strict reads, conditional writes, and lists that one bad row does not fail.
import { BusError, type Iii, issueText } from "@iii/sdk";
import { z } from "zod";
import { stateGetWithRev, stateList, stateTransact } from "./contract.ts";

/** A stored value with the revision that a conditional write must name; `value` is undefined, and `rev` 0, when there is none. */
export interface StoredRow<T> {
  readonly value: T | undefined;
  readonly rev: number;
}
/** A row that is not what its schema says: left out of a list, and named with what stands there and why that is not it. */
export interface UnreadableRow {
  readonly key: string;
  readonly rev: number;
  readonly raw: unknown;
  readonly reason: string;
}
/** What stands in a row: what was stored, nothing, or something else (`fault` then has it). */
export interface SeenRow<T> extends StoredRow<T> {
  readonly fault?: { readonly raw: unknown; readonly reason: string };
}
export interface RowList<T> {
  readonly rows: readonly { readonly key: string; readonly value: T; readonly rev: number }[];
  readonly unreadable: readonly UnreadableRow[];
}
export interface StateRows<T> {
  /** For callers that can go on without a row that cannot be read. */
  see(key: string): Promise<SeenRow<T>>;
  /** @throws BusError `store_corrupt` naming scope and key: a stored value is never repaired by guessing. */
  get(key: string): Promise<StoredRow<T>>;
  /** All rows, or those whose key starts with `prefix`, in insertion order. */
  list(prefix?: string): Promise<RowList<T>>;
  /** Writes, or deletes when `value` is undefined, if the row still has this revision (0: is not there). False when it has not. */
  replace(key: string, value: T | undefined, rev: number): Promise<boolean>;
}

const ListedRow = z.object({ key: z.string(), value: z.unknown(), rev: z.number() });

function corrupt(where: string, reason: string): BusError {
  return new BusError("store_corrupt", `${where} holds something else than was stored: ${reason}`);
}

/** The rows of `scope`, each of which is a `schema`. */
export function stateRows<S extends z.ZodType>(iii: Iii, scope: string, schema: S): StateRows<z.output<S>> {
  const see = async (key: string): Promise<SeenRow<z.output<S>>> => {
    const { value: raw, rev } = await iii.trigger(stateGetWithRev, { scope, key });
    if (raw === null || raw === undefined) return { value: undefined, rev };
    const parsed = schema.safeParse(raw);
    return parsed.success
      ? { value: parsed.data, rev }
      : { value: undefined, rev, fault: { raw, reason: issueText(parsed.error, "the value") } };
  };
  return {
    see,
    async get(key) {
      const { fault, ...row } = await see(key);
      if (fault !== undefined) throw corrupt(`${scope} ${key}`, fault.reason);
      return row;
    },
    async list(prefix) {
      const listed = await iii.trigger(stateList, { scope, with_keys: true, ...(prefix === undefined ? {} : { prefix }) });
      const all = ListedRow.array().safeParse(listed);
      if (!all.success) throw corrupt(`the list of ${scope}`, issueText(all.error));
      const rows: { key: string; value: z.output<S>; rev: number }[] = [];
      const unreadable: UnreadableRow[] = [];
      for (const { key, value: raw, rev } of all.data) {
        const parsed = schema.safeParse(raw);
        if (parsed.success) rows.push({ key, value: parsed.data, rev });
        else unreadable.push({ key, rev, raw, reason: issueText(parsed.error, "the value") });
      }
      return { rows, unreadable };
    },
    async replace(key, value, rev) {
      const write = value === undefined ? { scope, key, delete: true as const } : { scope, key, value };
      return (await iii.trigger(stateTransact, { checks: [{ scope, key, rev }], writes: [write] })).ok;
    },
  };
}
