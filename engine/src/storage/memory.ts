// A store in memory: for tests, and for engines that say out loud that nothing survives them.
import { BusError, type Clock } from "@iii/sdk";
import type { Row, Store, StoreStats, Write } from "../ports/store.ts";

export interface MemoryStore extends Store {
  /** A new handle on the same rows, as a restarted engine opens it. Older handles accept nothing more. */
  reopen(): MemoryStore;
}

export interface MemoryStoreOptions {
  /** How long each commit takes; needs `clock`. Default: the next microtask. */
  latency_ms?: number;
  clock?: Clock;
  /** Makes the commit with this number (from 1) fail, without applying it. */
  fault?: (commit: number) => BusError | undefined;
}

interface Content {
  readonly rows: Map<string, Row>;
  readonly stats: StoreStats;
  epoch: number;
}

function apply(content: Content, writes: readonly Write[]): void {
  for (const { space, key, value } of writes) {
    const id = JSON.stringify([space, key]);
    if (value === null) content.rows.delete(id);
    else content.rows.set(id, { space, key, value });
  }
  content.stats.commits += 1;
  content.stats.writes += writes.length;
}

const order = (left: Row, right: Row): number => {
  if (left.space !== right.space) return left.space < right.space ? -1 : 1;
  if (left.key === right.key) return 0;
  return left.key < right.key ? -1 : 1;
};

function open(content: Content, options: MemoryStoreOptions): MemoryStore {
  content.epoch += 1;
  const { epoch } = content;
  let failed: BusError | undefined;
  let tail: Promise<void> = Promise.resolve();

  const run = (writes: readonly Write[]): void => {
    if (failed !== undefined) throw failed;
    if (epoch !== content.epoch) failed = new BusError("store_unavailable", "this store has been opened by another engine");
    failed ??= options.fault?.(content.stats.commits + 1);
    if (failed !== undefined) throw failed;
    apply(content, writes);
  };
  const wait = (): Promise<void> => {
    const { clock, latency_ms: latency = 0 } = options;
    if (clock === undefined || latency === 0) return Promise.resolve();
    return new Promise((resolve) => clock.setTimer(resolve, latency));
  };

  return {
    durability: "memory",
    load: async () => [...content.rows.values()].sort(order),
    commit(writes) {
      const ready = wait();
      tail = tail.catch(() => undefined).then(() => ready.then(() => run(writes)));
      return tail;
    },
    stats: () => ({ ...content.stats }),
    close: async () => {
      await tail.catch(() => undefined);
    },
    reopen: () => open(content, options),
  };
}

/** An empty store whose rows outlive the engines that use it. */
export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  return open({ rows: new Map(), stats: { commits: 0, writes: 0 }, epoch: 0 }, options);
}
