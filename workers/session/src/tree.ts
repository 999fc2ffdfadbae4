// The rules of a session's tree. Pure: meta and entries come in, new ones go out; ids and time are arguments.
import type { AgentMessage } from "@iii/contracts";
import type { RowList } from "@iii/engine/contract";
import { BusError } from "@iii/sdk";
import type { SessionEntry, SessionMeta } from "./contract.ts";

const SUMMARY_LENGTH = 80;

export function newMeta(
  session_id: string,
  labels: { display_name?: string | undefined; cwd?: string | undefined },
  branches: number,
  now: number,
): SessionMeta {
  const { display_name, cwd } = labels;
  return {
    session_id,
    ...(display_name === undefined ? {} : { display_name }),
    ...(cwd === undefined ? {} : { cwd }),
    created_at: now,
    updated_at: now,
    branch_count: branches,
    entry_count: 0,
    leaf_id: null,
  };
}

export interface NewMessage {
  readonly entry_id: string;
  readonly message: AgentMessage;
}

/** Appends messages as one chain below `parent_id` (default: the active leaf). The last one becomes the active leaf. */
export function appendChain(
  meta: SessionMeta,
  items: readonly NewMessage[],
  options: { readonly parent_id: string | null | undefined; readonly now: number },
): { readonly meta: SessionMeta; readonly entries: readonly SessionEntry[] } {
  const start = options.parent_id ?? meta.leaf_id;
  const entries = items.map(
    ({ entry_id, message }, i): SessionEntry => ({
      type: "message",
      id: entry_id,
      parent_id: i === 0 ? start : (items[i - 1]?.entry_id ?? null),
      seq: meta.entry_count + i,
      timestamp: options.now,
      message,
    }),
  );
  const last = items.at(-1);
  if (last === undefined) return { meta, entries };
  const summary = summarise(last.message);
  const display_name = meta.display_name ?? titleOf(items);
  return {
    entries,
    meta: {
      ...meta,
      updated_at: Math.max(meta.updated_at, options.now),
      entry_count: meta.entry_count + items.length,
      branch_count: meta.branch_count + (start === meta.leaf_id ? 0 : 1),
      leaf_id: last.entry_id,
      ...(display_name === undefined ? {} : { display_name }),
      ...(summary === undefined ? {} : { last_message_summary: summary }),
    },
  };
}

/** A session that nobody named is called by the first thing that a person said in it. */
function titleOf(items: readonly NewMessage[]): string | undefined {
  const said = items.find(({ message }) => message.role === "user");
  return said === undefined ? undefined : summarise(said.message);
}

/** The first text of a message, cut to one line for lists. */
export function summarise(message: AgentMessage): string | undefined {
  if (message.role === "custom") return undefined;
  const text = message.content
    .find((block) => block.type === "text")
    ?.text.replace(/\s+/gu, " ")
    .trim();
  return text === undefined || text === "" ? undefined : Array.from(text).slice(0, SUMMARY_LENGTH).join("");
}

export interface Unreadable {
  readonly entry_id: string;
  readonly reason: string;
}
export interface Path {
  /** From the root to the leaf, oldest first. */
  readonly entries: readonly SessionEntry[];
  /** Entries of the chain that cannot be read or are not there. Where such an entry no longer says its parent, the path begins behind it. */
  readonly unreadable: readonly Unreadable[];
}

/**
 * The path to `leaf` by the parent chain alone. What cannot be read is left out and named: it never hides what can.
 * @throws BusError `entry_not_found` when `leaf` itself is not there; `store_corrupt` when the chain runs in a circle.
 */
export function pathTo({ rows, unreadable }: Pick<RowList<SessionEntry>, "rows" | "unreadable">, leaf: string | null): Path {
  const good = new Map(rows.map((row) => [row.key, row.value]));
  const bad = new Map(unreadable.map((row) => [row.key, row]));
  const entries: SessionEntry[] = [];
  const missing: Unreadable[] = [];
  for (let id = leaf; id !== null; ) {
    if (entries.length + missing.length > rows.length + unreadable.length)
      throw new BusError("store_corrupt", `the parents of entry '${leaf}' form a circle`);
    const entry = good.get(id);
    if (entry !== undefined) {
      entries.push(entry);
      id = entry.parent_id;
      continue;
    }
    const row = bad.get(id);
    if (row === undefined && id === leaf) throw new BusError("entry_not_found", `entry '${id}' is not in this session`);
    missing.push({ entry_id: id, reason: row?.reason ?? "it is not stored" });
    id = parentOf(row?.raw);
  }
  return { entries: entries.toReversed(), unreadable: missing.toReversed() };
}

function parentOf(raw: unknown): string | null {
  const parent = typeof raw === "object" && raw !== null && "parent_id" in raw ? raw.parent_id : null;
  return typeof parent === "string" ? parent : null;
}

/** A meta made anew from the entries, for one that cannot be read: the newest entry is the active leaf. */
export function rebuiltMeta(session_id: string, entries: readonly SessionEntry[], now: number): SessionMeta {
  const bySeq = entries.toSorted((a, b) => a.seq - b.seq);
  const last = bySeq.at(-1);
  if (last === undefined) return newMeta(session_id, {}, 0, now);
  const messages = bySeq.flatMap((entry) => (entry.type === "message" ? [{ entry_id: entry.id, message: entry.message }] : []));
  const display_name = titleOf(messages);
  return {
    ...newMeta(session_id, { display_name }, 0, bySeq[0]?.timestamp ?? now),
    updated_at: last.timestamp,
    entry_count: last.seq + 1,
    leaf_id: last.id,
  };
}
