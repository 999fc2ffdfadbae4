// Where sessions are kept: entries and meta as state rows, each change one checked commit. Names what it cannot read; decides nothing.
import { type RowList, type SeenRow, stateRows, stateTransact } from "@iii/engine/contract";
import type { Iii } from "@iii/sdk";
import { SessionEntry, SessionMeta } from "./contract.ts";

const META_SCOPE = "session_tree_meta";
const entryScope = (session_id: string) => `session_tree:${session_id}`;

export interface Versioned<T> {
  readonly value: T;
  readonly rev: number;
}
/** What stood in the way of a write. */
export type Conflict = { readonly kind: "meta" } | { readonly kind: "entry"; readonly entry_id: string };
export type Written = { readonly ok: true; readonly rev: number } | { readonly ok: false; readonly conflict: Conflict };

export interface SessionStore {
  meta(session_id: string): Promise<SeenRow<SessionMeta>>;
  metas(): Promise<RowList<SessionMeta>>;
  entry(session_id: string, entry_id: string): Promise<SeenRow<SessionEntry>>;
  entries(session_id: string): Promise<RowList<SessionEntry>>;
  /** Writes the meta if it still has `rev` (0: if there is none) and the entries if none of their ids is taken; all or nothing. */
  write(meta: SessionMeta, rev: number, entries: readonly SessionEntry[]): Promise<Written>;
}

export function stateStore(iii: Iii): SessionStore {
  const metas = stateRows(iii, META_SCOPE, SessionMeta);
  const entriesOf = (session_id: string) => stateRows(iii, entryScope(session_id), SessionEntry);
  return {
    meta: (session_id) => metas.see(session_id),
    metas: () => metas.list(),
    entry: (session_id, entry_id) => entriesOf(session_id).see(entry_id),
    entries: (session_id) => entriesOf(session_id).list(),
    async write(meta, rev, entries) {
      const scope = entryScope(meta.session_id);
      const metaAt = { scope: META_SCOPE, key: meta.session_id };
      const answer = await iii.trigger(stateTransact, {
        checks: [...entries.map(({ id }) => ({ scope, key: id, rev: 0 })), { ...metaAt, rev }],
        writes: [{ ...metaAt, value: meta }, ...entries.map((entry) => ({ scope, key: entry.id, value: entry }))],
      });
      if (answer.ok) return { ok: true, rev: answer.revs[0] ?? 0 };
      const { conflict } = answer;
      return { ok: false, conflict: conflict.scope === META_SCOPE ? { kind: "meta" } : { kind: "entry", entry_id: conflict.key } };
    },
  };
}
