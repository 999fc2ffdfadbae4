// The storage port: rows of JSON text under (space, key), changed in atomic batches that are durable when acknowledged.
// The disk is the truth: whoever uses a store reads rows when they are needed and keeps no copy of all of them.

/** One row. `space` groups rows of one kind (`state:<scope>`, `queue:<name>`, …); keys sort by the bytes of their UTF-8 text. */
export interface Row {
  readonly space: string;
  readonly key: string;
  readonly value: string;
}

/** A change of one row; `value: null` deletes it. */
export interface Write {
  readonly space: string;
  readonly key: string;
  readonly value: string | null;
}

export interface StoreStats {
  /** Transactions committed. */
  commits: number;
  /** Rows written or deleted. */
  writes: number;
}

export interface RangeOptions {
  /** Only rows whose key sorts after this one. */
  readonly after?: string | undefined;
  /** Only rows whose key starts so. */
  readonly prefix?: string | undefined;
  /** At most so many rows, 1 at least. A page ends earlier at about 1 MB of values. */
  readonly limit: number;
}

export interface Page {
  /** In order of their keys. */
  readonly rows: readonly Row[];
  /** Keys of rows that belong here and cannot be read. `health` names them, too; a list goes on without them. */
  readonly damaged?: readonly string[];
  /** There may be more: `after` of the next page. */
  readonly next?: string;
}

/** What a read of the store gives: at once where the adapter can, later where it must ask. */
export type MaybePromise<T> = T | Promise<T>;

/** What a start must know. */
export interface Opened {
  /** The last engine on this store closed it. */
  readonly clean: boolean;
  /** The rows were written by an earlier format. True at every start until a clean stop: what is derived from them may be missing. */
  readonly migrated: boolean;
}

export interface CommitOptions {
  /** May use the space that is kept back for ends, denials and acknowledgements when the disk is full. */
  readonly reserve?: boolean;
}

export interface StoreHealth {
  /** `full`: no space; only deletes and batches with `reserve` are taken until there is some. */
  readonly mode: "ok" | "full";
  /** Damaged or missing rows known so far, as `<space> <key>: what is wrong`. At most 100 are named. */
  readonly damaged: readonly string[];
  /** All of them. */
  readonly damaged_rows: number;
  /** Whether every row has been looked at since the start. `none`: this store does not look by itself. */
  readonly scrub: "none" | "waiting" | "running" | "done" | "failed";
}

/**
 * Batches commit in the order in which `commit` was called; batches that arrive while one is in flight share the next transaction.
 * `commit` resolves only when the batch is as durable as `durability` says. It rejects with BusError `STORE_FULL` when there is no space:
 * so does every batch that was waiting behind it, and the store goes on. After any other rejection (`store_unavailable`, `store_corrupt`)
 * nothing more is accepted: a failed sync is never retried.
 * While `health().mode` is `full`, `commit` refuses at once whatever `takenWhenFull` (storage/full.ts) does not let in, and that alone:
 * whoever shows rows to others before they are stored asks it first.
 * Reads see what has been committed, not what is on its way. `get` rejects with `store_corrupt` naming a row that is damaged.
 */
export interface Store {
  readonly durability: "full" | "relaxed" | "memory";
  /** Opens the store; every call gives the same answer. Rejects with what is wrong with it. The first read or commit opens it as well. */
  open(): Promise<Opened>;
  /** Everything in the store, read once at start. On its way out: use `range`. */
  load(): Promise<readonly Row[]>;
  /** The value of one row; undefined: there is none. */
  get(space: string, key: string): MaybePromise<string | undefined>;
  /** Rows of one space in order of their keys, a page at a time. */
  range(space: string, options: RangeOptions): Promise<Page>;
  commit(writes: readonly Write[], options?: CommitOptions): Promise<void>;
  health(): StoreHealth;
  stats(): StoreStats;
  close(): Promise<void>;
}
