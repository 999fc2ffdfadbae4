// One group of a stream, in memory: its items, its history and its place in the sequence. Pure: no storage, no calls.

export interface Item {
  readonly data: unknown;
  readonly seq: number;
  /** The number at which the item appeared: insertion order. */
  readonly created: number;
  readonly ephemeral: boolean;
  /** Characters of its JSON text. */
  readonly size: number;
}

export type EntryKind = "create" | "update" | "delete" | "event";

export interface Entry {
  readonly seq: number;
  readonly item_id: string | null;
  readonly data: unknown;
  readonly ephemeral: boolean;
  readonly event: EntryKind;
}

export interface Reading {
  readonly epoch: string;
  readonly seq: number;
  readonly gap: boolean;
  readonly items: readonly Entry[];
}

/** How many changes a group's history holds, and how much of their JSON text. */
export const HISTORY = 2_000;
export const HISTORY_CHARS = 8 * 1_048_576;
/** Trimmed in blocks, so that a busy group does not move its whole history with every change. */
const SLACK = 1.25;

interface Kept {
  readonly entry: Entry;
  readonly size: number;
}

export class Group {
  /** New whenever the history starts anew, which it does with each engine: cursors of another epoch are foreign. */
  readonly epoch: string;
  readonly items = new Map<string, Item>();
  #seq: number;
  /** Changes up to here are no longer in the history. */
  #floor: number;
  #history: Kept[] = [];
  #size = 0;

  constructor(epoch: string, seq = 0) {
    this.epoch = epoch;
    this.#seq = seq;
    this.#floor = seq;
  }

  get seq(): number {
    return this.#seq;
  }

  put(item_id: string, data: unknown, ephemeral: boolean, size: number): Entry {
    const old = this.items.get(item_id);
    const entry = this.#record({ item_id, data, ephemeral, event: old === undefined ? "create" : "update" }, size);
    this.items.set(item_id, { data, seq: entry.seq, created: old?.created ?? entry.seq, ephemeral, size });
    return entry;
  }

  remove(item_id: string): Entry | undefined {
    const old = this.items.get(item_id);
    if (old === undefined) return undefined;
    this.items.delete(item_id);
    return this.#record({ item_id, data: old.data, ephemeral: old.ephemeral, event: "delete" }, old.size);
  }

  /** A change of an item that lives elsewhere (a custom stream), or an event that is stored nowhere. */
  note(item_id: string | null, data: unknown, event: EntryKind, size: number): Entry {
    return this.#record({ item_id, data, ephemeral: true, event }, size);
  }

  /** Forgets ephemeral items by prefix, and their history: whoever has not read them does not miss them. */
  drop(prefix: string): void {
    const gone = (id: string): boolean => id.startsWith(prefix) && this.items.get(id)?.ephemeral !== false;
    this.#keep(this.#history.filter(({ entry: { item_id, ephemeral } }) => !ephemeral || item_id === null || !gone(item_id)));
    for (const id of [...this.items.keys()]) if (gone(id)) this.items.delete(id);
  }

  /** What came after `since`; without a cursor the whole group; with a lost or foreign one `gap` and the whole group. */
  read(since: number | undefined, epoch: string | undefined): Reading {
    const known = epoch === undefined || epoch === this.epoch;
    const reachable = since !== undefined && known && since >= this.#floor && since <= this.#seq;
    const items = reachable ? this.#history.map(({ entry }) => entry).filter(({ seq }) => seq > since) : this.#snapshot();
    return { epoch: this.epoch, seq: this.#seq, gap: since !== undefined && !reachable, items };
  }

  #snapshot(): Entry[] {
    const all = [...this.items].map(([item_id, { data, seq, ephemeral }]): Entry => ({ seq, item_id, data, ephemeral, event: "create" }));
    return all.sort((left, right) => left.seq - right.seq);
  }

  #record(change: Omit<Entry, "seq">, size: number): Entry {
    this.#seq += 1;
    const entry: Entry = { seq: this.#seq, ...change };
    this.#history.push({ entry, size });
    this.#size += size;
    if (this.#history.length >= HISTORY * SLACK || this.#size > HISTORY_CHARS * SLACK) this.#trim();
    return entry;
  }

  /** Keeps the newest changes, as many as the bounds allow and one at least. */
  #trim(): void {
    let size = 0;
    let from = this.#history.length;
    while (from > 0 && this.#history.length - from < HISTORY) {
      size += this.#history[from - 1]?.size ?? 0;
      if (size > HISTORY_CHARS && from < this.#history.length) break;
      from -= 1;
    }
    this.#keep(this.#history.slice(from));
    this.#floor = (this.#history[0]?.entry.seq ?? this.#seq + 1) - 1;
  }

  #keep(history: Kept[]): void {
    this.#history = history;
    this.#size = history.reduce((sum, { size }) => sum + size, 0);
  }
}
