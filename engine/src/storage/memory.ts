// A store in memory: for tests, and for engines that say out loud that nothing survives them.
import { BusError, type Clock } from "@iii/sdk";
import type { Page, RangeOptions, Row, Store, StoreStats, Write } from "../ports/store.ts";

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

/** As the bytes of the text sort, which is not how its UTF-16 units do. */
const byBytes = (left: string, right: string): number => (left === right ? 0 : Buffer.compare(Buffer.from(left), Buffer.from(right)));
const order = (left: Row, right: Row): number => byBytes(left.space, right.space) || byBytes(left.key, right.key);

const PAGE_CHARS = 1_048_576;

function pageOf(content: Content, space: string, { after, prefix = "", limit }: RangeOptions): Page {
  const found = [...content.rows.values()]
    .filter((row) => row.space === space && row.key.startsWith(prefix) && (after === undefined || byBytes(row.key, after) > 0))
    .sort(order);
  let size = 0;
  const end = found.findIndex(({ value }, index) => {
    if (index > 0 && (index >= limit || size >= PAGE_CHARS)) return true;
    size += value.length;
    return false;
  });
  if (end === -1) return { rows: found };
  const rows = found.slice(0, end);
  const last = rows.at(-1);
  return last === undefined ? { rows } : { rows, next: last.key };
}

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
    open: async () => ({ clean: true, migrated: false }),
    health: () => ({ mode: "ok", damaged: [], damaged_rows: 0, scrub: "none" }),
    load: async () => [...content.rows.values()].sort(order),
    get: (space, key) => content.rows.get(JSON.stringify([space, key]))?.value,
    range: async (space, range) => pageOf(content, space, range),
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
