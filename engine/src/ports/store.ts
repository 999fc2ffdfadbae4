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
  /** There may be more: `after` of the next page. */
  readonly next?: string;
}

/** What a read of the store gives: at once where the adapter can, later where it must ask. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Batches commit in the order in which `commit` was called; batches that arrive while one is in flight share the next transaction.
 * `commit` resolves only when the batch is as durable as `durability` says. It rejects with BusError `store_full`,
 * `store_unavailable` or `store_corrupt`; after a rejection nothing more is accepted (a failed sync is never retried).
 * Reads see what has been committed, not what is on its way. They reject with `store_corrupt` naming the row that is damaged.
 */
export interface Store {
  readonly durability: "full" | "relaxed" | "memory";
  /** Everything in the store, read once at start. On its way out: use `range`. */
  load(): Promise<readonly Row[]>;
  /** The value of one row; undefined: there is none. */
  get(space: string, key: string): MaybePromise<string | undefined>;
  /** Rows of one space in order of their keys, a page at a time. */
  range(space: string, options: RangeOptions): Promise<Page>;
  commit(writes: readonly Write[]): Promise<void>;
  stats(): StoreStats;
  close(): Promise<void>;
}
