// The values of state, in memory, and the rows they are kept in. Every change takes the next store-wide revision.
import type { BusError, Logger } from "@iii/sdk";
import type { Row } from "../../../ports/store.ts";
import type { Batch, Ledger } from "../ledger.ts";
import { decode, numbered, readable, valueText } from "../text.ts";

export interface Entry {
  readonly value: unknown;
  readonly rev: number;
  /** The revision at which the key appeared: insertion order. */
  readonly created: number;
}

export interface Change {
  readonly scope: string;
  readonly key: string;
  readonly old: Entry | undefined;
  /** Undefined: the key is gone. */
  readonly now: Entry | undefined;
  readonly rev: number;
}

const SPACE = "state:";
export const stateSpace = (scope: string): string => SPACE + scope;

const rowId = (space: string, key: string): string => `${space}\0${key}`;

function readRow(row: Row) {
  const { r, c, v } = decode<{ r: number; c: number; v: unknown }>(row, (value) => numbered(value, ["r", "c"]));
  return { scope: row.space.slice(SPACE.length), key: row.key, entry: { value: v, rev: r, created: c } };
}

export class StateTable {
  readonly #scopes = new Map<string, Map<string, Entry>>();
  /** Rows of the store that hold something else than was stored, until they are written anew. */
  readonly #unreadable = new Map<string, BusError>();
  readonly #ledger: Ledger;
  readonly #log: Logger;
  readonly #maxBytes: number;

  constructor(ledger: Ledger, log: Logger, maxBytes: number) {
    this.#ledger = ledger;
    this.#log = log;
    this.#maxBytes = maxBytes;
  }

  /** Fills the table from the loaded rows. */
  restore(): void {
    const found = readable(this.#ledger.rows(SPACE), readRow, (row, error) => {
      this.#unreadable.set(rowId(row.space, row.key), error);
      this.#log.error({ err: error, space: row.space, key: row.key }, "a stored value cannot be read; the others are there");
    });
    for (const { entry } of found) this.#ledger.reached(entry.rev);
    found.sort((left, right) => left.entry.created - right.entry.created);
    for (const { scope, key, entry } of found) this.#scope(scope).set(key, entry);
  }

  /** @throws BusError `store_corrupt` for a row that cannot be read: it is not the same as none. */
  get(scope: string, key: string): Entry | undefined {
    if (this.#unreadable.size > 0) {
      const error = this.#unreadable.get(rowId(stateSpace(scope), key));
      if (error !== undefined) throw error;
    }
    return this.#entry(scope, key);
  }

  /** The entries of a scope in insertion order. */
  list(scope: string): readonly (readonly [string, Entry])[] {
    return [...(this.#scopes.get(scope) ?? [])];
  }

  /** Scopes that hold a value, sorted. */
  scopes(): readonly string[] {
    return [...this.#scopes.keys()].sort();
  }

  /** The JSON text of a value. @throws BusError `VALUE_TOO_LARGE`. */
  text(scope: string, key: string, value: unknown): string {
    return valueText(value, `the value of ${scope}/${key}`, this.#maxBytes);
  }

  /** Sets a value whose `text` has been made; part of `batch`. */
  put(batch: Batch, scope: string, key: string, value: unknown, text: string): Change {
    const old = this.#entry(scope, key);
    if (this.#unreadable.size > 0) this.#unreadable.delete(rowId(stateSpace(scope), key));
    const rev = this.#ledger.next();
    const now: Entry = { value: value ?? null, rev, created: old?.created ?? rev };
    this.#scope(scope).set(key, now);
    batch.put(stateSpace(scope), key, `{"r":${rev},"c":${now.created},"v":${text}}`);
    return { scope, key, old, now, rev };
  }

  remove(batch: Batch, scope: string, key: string): Change {
    const old = this.#entry(scope, key);
    const rev = this.#ledger.next();
    if (this.#unreadable.size > 0 && this.#unreadable.delete(rowId(stateSpace(scope), key))) batch.remove(stateSpace(scope), key);
    if (old !== undefined) {
      const entries = this.#scope(scope);
      entries.delete(key);
      if (entries.size === 0) this.#scopes.delete(scope);
      batch.remove(stateSpace(scope), key);
      this.#ledger.keepRev(batch);
    }
    return { scope, key, old, now: undefined, rev };
  }

  #entry(scope: string, key: string): Entry | undefined {
    return this.#scopes.get(scope)?.get(key);
  }

  #scope(scope: string): Map<string, Entry> {
    const entries = this.#scopes.get(scope) ?? new Map<string, Entry>();
    this.#scopes.set(scope, entries);
    return entries;
  }
}
