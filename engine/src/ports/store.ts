// The storage port: rows of JSON text under (space, key), changed in atomic batches that are durable when acknowledged.

/** One row. `space` groups rows of one kind (`state:<scope>`, `queue:<name>`, …); keys sort by their bytes. */
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

/**
 * Batches commit in the order in which `commit` was called; batches that arrive while one is in flight share the next transaction.
 * `commit` resolves only when the batch is as durable as `durability` says. It rejects with BusError `store_full`,
 * `store_unavailable` or `store_corrupt`; after a rejection nothing more is accepted (a failed sync is never retried).
 */
export interface Store {
  readonly durability: "full" | "relaxed" | "memory";
  /** Everything in the store, read once at start. */
  load(): Promise<readonly Row[]>;
  commit(writes: readonly Write[]): Promise<void>;
  stats(): StoreStats;
  close(): Promise<void>;
}
