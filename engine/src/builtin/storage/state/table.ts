// The values of state, in memory, and the rows they are kept in. Every change takes the next store-wide revision.
import type { Batch, Ledger } from "../ledger.ts";
import { decode, valueText } from "../text.ts";

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

export class StateTable {
  readonly #scopes = new Map<string, Map<string, Entry>>();
  readonly #ledger: Ledger;
  readonly #maxBytes: number;

  constructor(ledger: Ledger, maxBytes: number) {
    this.#ledger = ledger;
    this.#maxBytes = maxBytes;
  }

  /** Fills the table from the loaded rows. */
  restore(): void {
    const found = this.#ledger.rows(SPACE).map((row) => {
      const { r, c, v } = decode<{ r: number; c: number; v: unknown }>(row);
      return { scope: row.space.slice(SPACE.length), key: row.key, entry: { value: v, rev: r, created: c } };
    });
    found.sort((left, right) => left.entry.created - right.entry.created);
    for (const { scope, key, entry } of found) this.#scope(scope).set(key, entry);
  }

  get(scope: string, key: string): Entry | undefined {
    return this.#scopes.get(scope)?.get(key);
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
    const old = this.get(scope, key);
    const rev = this.#ledger.next();
    const now: Entry = { value: value ?? null, rev, created: old?.created ?? rev };
    this.#scope(scope).set(key, now);
    batch.put(stateSpace(scope), key, `{"r":${rev},"c":${now.created},"v":${text}}`);
    return { scope, key, old, now, rev };
  }

  remove(batch: Batch, scope: string, key: string): Change {
    const old = this.get(scope, key);
    const rev = this.#ledger.next();
    if (old !== undefined) {
      const entries = this.#scope(scope);
      entries.delete(key);
      if (entries.size === 0) this.#scopes.delete(scope);
      batch.remove(stateSpace(scope), key);
      this.#ledger.keepRev(batch);
    }
    return { scope, key, old, now: undefined, rev };
  }

  #scope(scope: string): Map<string, Entry> {
    const entries = this.#scopes.get(scope) ?? new Map<string, Entry>();
    this.#scopes.set(scope, entries);
    return entries;
  }
}
