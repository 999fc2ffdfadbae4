// Where sessions are kept: entries and meta as state values, each change one checked commit. Reads strictly; decides nothing.
import { stateGetWithRev, stateList, stateTransact } from "@iii/engine/contract";
import { BusError, type Iii } from "@iii/sdk";
import type { z } from "zod";
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
  meta(session_id: string): Promise<Versioned<SessionMeta> | undefined>;
  metas(): Promise<readonly SessionMeta[]>;
  entry(session_id: string, entry_id: string): Promise<SessionEntry | undefined>;
  entries(session_id: string): Promise<readonly SessionEntry[]>;
  /** Writes the meta if it still has `rev` (0: if there is none) and the entries if none of their ids is taken; all or nothing. */
  write(meta: SessionMeta, rev: number, entries: readonly SessionEntry[]): Promise<Written>;
}

export function stateStore(iii: Iii): SessionStore {
  return {
    async meta(session_id) {
      const { value, rev } = await iii.trigger(stateGetWithRev, { scope: META_SCOPE, key: session_id });
      return value === null || value === undefined ? undefined : { value: parse(SessionMeta, value, `session ${session_id}`), rev };
    },
    async metas() {
      const values = await iii.trigger(stateList, { scope: META_SCOPE });
      return values.map((value) => parse(SessionMeta, value, "a session"));
    },
    async entry(session_id, entry_id) {
      const { value } = await iii.trigger(stateGetWithRev, { scope: entryScope(session_id), key: entry_id });
      return value === null || value === undefined ? undefined : parse(SessionEntry, value, `entry ${session_id}/${entry_id}`);
    },
    async entries(session_id) {
      const values = await iii.trigger(stateList, { scope: entryScope(session_id) });
      return values.map((value) => parse(SessionEntry, value, `an entry of ${session_id}`));
    },
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

function parse<S extends z.ZodType>(schema: S, value: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new BusError("store_corrupt", `${what} is stored in a shape that is not its own: ${issue?.path.join(".")}: ${issue?.message}`);
}
