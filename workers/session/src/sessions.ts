// Creates, extends and reads sessions over the store. Every append is one checked commit; a lost race is run again on what won.
import type { AgentMessage } from "@iii/contracts";
import { unstorable } from "@iii/contracts/storable";
import { BusError, type Clock, type Random } from "@iii/sdk";
import type { z } from "zod";
import type { listSessions, SessionMeta, sessionMessages } from "./contract.ts";
import { deepEqual } from "./equal.ts";
import type { SessionStore, Versioned } from "./store.ts";
import { appendChain, type NewMessage, newMeta, pathTo, rebuiltMeta } from "./tree.ts";

const MAX_ATTEMPTS = 100;
const CACHED = 256;
/** A message is one row of the store, which takes 16 MiB. */
const MAX_MESSAGE_BYTES = 15 * 1024 * 1024;

interface AppendRequest {
  readonly session_id: string;
  readonly parent_id?: string | null | undefined;
  readonly entry_ids?: readonly string[] | undefined;
  readonly messages: readonly AgentMessage[];
  readonly create?: boolean | undefined;
}
type Labels = { readonly display_name?: string | undefined; readonly cwd?: string | undefined };

export class Sessions {
  readonly #store: SessionStore;
  readonly #clock: Clock;
  readonly #random: Random;
  /** Last known metas, so that an append in a run of appends costs one round trip. Only a hint: each write checks the revision. */
  readonly #metas = new Map<string, Versioned<SessionMeta>>();
  /** One append at a time per session here; other processes are met by the revision check. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(deps: { store: SessionStore; clock: Clock; random: Random }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#random = deps.random;
  }

  async create(labels: Labels): Promise<string> {
    const session_id = this.#random.uuid();
    await this.#createIfAbsent(session_id, labels, 1);
    return session_id;
  }

  async ensure(session_id: string, labels: Labels): Promise<void> {
    if (this.#metas.has(session_id) || (await this.#load(session_id)) !== undefined) return;
    await this.#createIfAbsent(session_id, labels, 0);
  }

  /** Appends a chain of messages. With `entry_ids`, entries that are there already are kept, so that a repeat changes nothing. */
  async append(request: AppendRequest): Promise<string[]> {
    const { session_id, messages, entry_ids } = request;
    const ids = entry_ids ?? messages.map(() => this.#random.uuid());
    if (ids.length !== messages.length || new Set(ids).size !== ids.length) {
      throw new BusError("invalid_payload", "'entry_ids' must name each message once", {
        details: { messages: messages.length, entry_ids: ids.length },
      });
    }
    for (const message of messages) {
      const fault = unstorable(message, MAX_MESSAGE_BYTES);
      if (fault !== undefined) throw new BusError(fault.code, `a message cannot be stored: ${fault.message}`);
    }
    const items = messages.map((message, i): NewMessage => ({ entry_id: ids[i] ?? "", message }));
    await this.#inTurn(session_id, () => this.#appendMissing(request, items));
    return [...ids];
  }

  /** @throws BusError `entry_not_found` for a `branch_leaf` that the session does not have. */
  async messages(session_id: string, branch_leaf: string | undefined): Promise<z.output<typeof sessionMessages.output>> {
    // In this order: entries may be newer than the leaf, never older.
    const [meta, stored] = await Promise.all([this.#load(session_id), this.#store.entries(session_id)]);
    const { entries, unreadable } = pathTo(stored, branch_leaf ?? meta?.value.leaf_id ?? null);
    const messages = entries.flatMap((entry) => (entry.type === "message" ? [{ entry_id: entry.id, message: entry.message }] : []));
    return { messages, ...(unreadable.length === 0 ? {} : { unreadable: [...unreadable] }) };
  }

  async list(query: z.output<typeof listSessions.input>): Promise<z.output<typeof listSessions.output>> {
    const { rows, unreadable } = await this.#store.metas();
    const sign = query.order === "asc" ? 1 : -1;
    const metas = rows.map((row) => row.value);
    metas.sort((a, b) => sign * (a.updated_at - b.updated_at || (a.session_id < b.session_id ? -1 : 1)));
    const offset = query.offset ?? 0;
    const page = metas.slice(offset, query.limit === undefined ? undefined : offset + query.limit);
    const sessions = page.map(({ branch_count: _branches, leaf_id: _leaf, ...row }) => row);
    const bad = unreadable.map(({ key, reason }) => ({ session_id: key, reason }));
    return { sessions, total: metas.length, ...(bad.length === 0 ? {} : { unreadable: bad }) };
  }

  async #appendMissing({ session_id, parent_id, create }: AppendRequest, items: readonly NewMessage[]): Promise<void> {
    let rest = items;
    let parent = parent_id;
    if (parent !== null && parent !== undefined) await this.#mustExist(session_id, parent);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      if (rest.length === 0) return;
      const meta = await this.#metaOf(session_id, create === true, attempt === 0);
      const next = appendChain(meta.value, rest, { parent_id: parent, now: this.#clock.now() });
      const written = await this.#store.write(next.meta, meta.rev, next.entries);
      if (written.ok) return this.#remember({ value: next.meta, rev: written.rev });
      this.#metas.delete(session_id);
      if (written.conflict.kind === "entry") [rest, parent] = await this.#skipKnown(session_id, rest, parent);
    }
    throw new BusError("too_many_in_flight", `session '${session_id}' kept changing while a message was appended`);
  }

  /**
   * The meta to write on. At first a session that is unknown here and may be created is taken for new: the write's check knows better.
   * @throws BusError `session_not_found` when it is not there and not to be created.
   */
  async #metaOf(session_id: string, create: boolean, first: boolean): Promise<Versioned<SessionMeta>> {
    const known = this.#metas.get(session_id) ?? (create && first ? undefined : await this.#load(session_id));
    if (known !== undefined) return known;
    if (!create) throw notFound(session_id);
    return { value: newMeta(session_id, {}, 0, this.#clock.now()), rev: 0 };
  }

  /** Takes away the items that stand in the session already. With an explicit parent, what follows goes below the last of them. */
  async #skipKnown(
    session_id: string,
    items: readonly NewMessage[],
    parent: string | null | undefined,
  ): Promise<[readonly NewMessage[], string | null | undefined]> {
    let below = parent;
    for (const [i, item] of items.entries()) {
      const { value: entry, rev } = await this.#store.entry(session_id, item.entry_id);
      if (rev === 0) return [items.slice(i), below];
      if (entry?.type !== "message" || !deepEqual(entry.message, item.message)) {
        throw new BusError("idempotency_conflict", `entry '${item.entry_id}' exists with another message`, {
          details: { session_id, entry_id: item.entry_id },
        });
      }
      if (below !== null && below !== undefined) below = item.entry_id;
    }
    return [[], below];
  }

  async #mustExist(session_id: string, entry_id: string): Promise<void> {
    const { rev } = await this.#store.entry(session_id, entry_id);
    if (rev === 0) throw new BusError("entry_not_found", `entry '${entry_id}' is not in session '${session_id}'`);
  }

  async #createIfAbsent(session_id: string, labels: Labels, branches: number): Promise<void> {
    const value = newMeta(session_id, labels, branches, this.#clock.now());
    const written = await this.#store.write(value, 0, []);
    if (written.ok) this.#remember({ value, rev: written.rev });
  }

  async #load(session_id: string): Promise<Versioned<SessionMeta> | undefined> {
    const { value, rev, fault } = await this.#store.meta(session_id);
    const known = value ?? (fault === undefined ? undefined : await this.#rebuild(session_id));
    if (known === undefined) {
      this.#metas.delete(session_id);
      return undefined;
    }
    this.#remember({ value: known, rev });
    return { value: known, rev };
  }

  /** A meta that cannot be read is made anew from the session's entries; the next append writes it. */
  async #rebuild(session_id: string): Promise<SessionMeta> {
    const { rows } = await this.#store.entries(session_id);
    const entries = rows.map((row) => row.value);
    return rebuiltMeta(session_id, entries, this.#clock.now());
  }

  #remember(meta: Versioned<SessionMeta>): void {
    const { session_id } = meta.value;
    const known = this.#metas.get(session_id);
    if (known !== undefined && known.rev > meta.rev) return;
    this.#metas.delete(session_id);
    this.#metas.set(session_id, meta);
    const oldest = this.#metas.size > CACHED ? this.#metas.keys().next().value : undefined;
    if (oldest !== undefined) this.#metas.delete(oldest);
  }

  async #inTurn<T>(session_id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(session_id) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#turns.set(session_id, mine);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(session_id) === mine) this.#turns.delete(session_id);
    }
  }
}

function notFound(session_id: string): BusError {
  return new BusError("session_not_found", `there is no session '${session_id}'; create it with session-tree::ensure`);
}
