// One group of a stream, in memory: its items, its history and its place in the sequence. Pure: no storage, no calls.

export interface Item {
  readonly data: unknown;
  readonly seq: number;
  /** The number at which the item appeared: insertion order. */
  readonly created: number;
  readonly ephemeral: boolean;
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

/** How many changes a group's history holds. */
export const HISTORY = 2_000;

export class Group {
  /** New whenever the history starts anew, which it does with each engine: cursors of another epoch are foreign. */
  readonly epoch: string;
  readonly items = new Map<string, Item>();
  #seq: number;
  /** Changes up to here are no longer in the history. */
  #floor: number;
  #history: Entry[] = [];

  constructor(epoch: string, seq = 0) {
    this.epoch = epoch;
    this.#seq = seq;
    this.#floor = seq;
  }

  get seq(): number {
    return this.#seq;
  }

  put(item_id: string, data: unknown, ephemeral: boolean): Entry {
    const old = this.items.get(item_id);
    const entry = this.#record(item_id, data, ephemeral, old === undefined ? "create" : "update");
    this.items.set(item_id, { data, seq: entry.seq, created: old?.created ?? entry.seq, ephemeral });
    return entry;
  }

  remove(item_id: string): Entry | undefined {
    const old = this.items.get(item_id);
    if (old === undefined) return undefined;
    this.items.delete(item_id);
    return this.#record(item_id, old.data, old.ephemeral, "delete");
  }

  /** A change of an item that lives elsewhere (a custom stream), or an event that is stored nowhere. */
  note(item_id: string | null, data: unknown, event: EntryKind): Entry {
    return this.#record(item_id, data, true, event);
  }

  /** Forgets ephemeral items by prefix, and their history: whoever has not read them does not miss them. */
  drop(prefix: string): void {
    const gone = (id: string): boolean => id.startsWith(prefix) && this.items.get(id)?.ephemeral !== false;
    this.#history = this.#history.filter(({ item_id, ephemeral }) => !ephemeral || item_id === null || !gone(item_id));
    for (const id of [...this.items.keys()]) if (gone(id)) this.items.delete(id);
  }

  /** What came after `since`; without a cursor the whole group; with a lost or foreign one `gap` and the whole group. */
  read(since: number | undefined, epoch: string | undefined): Reading {
    const known = epoch === undefined || epoch === this.epoch;
    const reachable = since !== undefined && known && since >= this.#floor && since <= this.#seq;
    const items = reachable ? this.#history.filter(({ seq }) => seq > since) : this.#snapshot();
    return { epoch: this.epoch, seq: this.#seq, gap: since !== undefined && !reachable, items };
  }

  #snapshot(): Entry[] {
    const all = [...this.items].map(([item_id, { data, seq, ephemeral }]): Entry => ({ seq, item_id, data, ephemeral, event: "create" }));
    return all.sort((left, right) => left.seq - right.seq);
  }

  #record(item_id: string | null, data: unknown, ephemeral: boolean, event: EntryKind): Entry {
    this.#seq += 1;
    const entry: Entry = { seq: this.#seq, item_id, data, ephemeral, event };
    this.#history.push(entry);
    // Trimmed in blocks, so that a busy group does not move its whole history with every change.
    if (this.#history.length >= HISTORY * 1.25) {
      const kept = this.#history.slice(-HISTORY);
      this.#floor = (kept[0]?.seq ?? this.#seq + 1) - 1;
      this.#history = kept;
    }
    return entry;
  }
}
