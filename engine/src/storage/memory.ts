// A store in memory: for tests, and for engines that say out loud that nothing survives them.
import { BusError, type Clock } from "@iii/sdk";
import type { Page, RangeOptions, Row, Store, StoreStats, Write } from "../ports/store.ts";
import { SortedRows } from "./sorted-rows.ts";

export interface MemoryStore extends Store {
  /** A new handle on the same rows, as a restarted engine opens it. Older handles accept nothing more. */
  reopen(): MemoryStore;
}

export interface MemoryStoreOptions {
  /** How long each commit takes; needs `clock`. Default: the next microtask. */
  latency_ms?: number;
  clock?: Clock;
  /** Makes the commit with this number (from 1) fail, without applying it. `STORE_FULL` fails what was planned after it, too; any other is final. */
  fault?: (commit: number) => BusError | undefined;
}

interface Content {
  readonly spaces: Map<string, SortedRows>;
  readonly stats: StoreStats;
  epoch: number;
}

function apply(content: Content, writes: readonly Write[]): void {
  for (const { space, key, value } of writes) {
    const rows = content.spaces.get(space) ?? new SortedRows();
    content.spaces.set(space, rows);
    if (value === null) rows.delete(key);
    else rows.set(key, value);
    if (rows.size === 0) content.spaces.delete(space);
  }
  content.stats.commits += 1;
  content.stats.writes += writes.length;
}

const PAGE_CHARS = 1_048_576;

function pageOf(content: Content, space: string, { after, prefix = "", limit }: RangeOptions): Page {
  const rows: Row[] = [];
  let size = 0;
  for (const [key, value] of content.spaces.get(space)?.from(after, prefix) ?? []) {
    const last = rows.at(-1);
    if (!key.startsWith(prefix)) break;
    if (last !== undefined && (rows.length >= limit || size >= PAGE_CHARS)) return { rows, next: last.key };
    rows.push({ space, key, value });
    size += value.length;
  }
  return { rows };
}

function everything(content: Content): Row[] {
  const spaces = new SortedRows();
  for (const space of content.spaces.keys()) spaces.set(space, "");
  return [...spaces.from(undefined, "")].flatMap(([space]) => pageOf(content, space, { limit: Number.POSITIVE_INFINITY }).rows);
}

/** Commits one by one, each after its own latency. */
class Writer {
  readonly #content: Content;
  readonly #options: MemoryStoreOptions;
  readonly #epoch: number;
  #failed: BusError | undefined;
  #issued = 0;
  /** Batches up to this one were planned before a refusal for want of space was seen. */
  #refused: { upTo: number; error: BusError } | undefined;
  #tail: Promise<void> = Promise.resolve();

  constructor(content: Content, options: MemoryStoreOptions) {
    this.#content = content;
    this.#options = options;
    this.#epoch = content.epoch;
  }

  commit(writes: readonly Write[]): Promise<void> {
    this.#issued += 1;
    const number = this.#issued;
    const ready = this.#latency();
    this.#tail = this.#tail.catch(() => undefined).then(() => ready.then(() => this.#run(number, writes)));
    return this.#tail;
  }

  async settled(): Promise<void> {
    await this.#tail.catch(() => undefined);
  }

  #latency(): Promise<void> {
    const { clock, latency_ms: latency = 0 } = this.#options;
    if (clock === undefined || latency === 0) return Promise.resolve();
    return new Promise((resolve) => clock.setTimer(resolve, latency));
  }

  #run(number: number, writes: readonly Write[]): void {
    if (this.#failed !== undefined) throw this.#failed;
    if (this.#refused !== undefined && number <= this.#refused.upTo) throw this.#refused.error;
    const error = this.#fault();
    if (error?.code === "STORE_FULL") this.#refused = { upTo: this.#issued, error };
    else this.#failed = error;
    if (error !== undefined) throw error;
    apply(this.#content, writes);
  }

  #fault(): BusError | undefined {
    if (this.#epoch !== this.#content.epoch) return new BusError("store_unavailable", "this store has been opened by another engine");
    return this.#options.fault?.(this.#content.stats.commits + 1);
  }
}

function open(content: Content, options: MemoryStoreOptions): MemoryStore {
  content.epoch += 1;
  const writer = new Writer(content, options);
  return {
    durability: "memory",
    open: async () => ({ clean: true, migrated: false }),
    health: () => ({ mode: "ok", damaged: [], damaged_rows: 0, scrub: "none" }),
    load: async () => everything(content),
    get: (space, key) => content.spaces.get(space)?.get(key),
    range: async (space, range) => pageOf(content, space, range),
    commit: (writes) => writer.commit(writes),
    stats: () => ({ ...content.stats }),
    close: () => writer.settled(),
    reopen: () => open(content, options),
  };
}

/** An empty store whose rows outlive the engines that use it. */
export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  return open({ spaces: new Map(), stats: { commits: 0, writes: 0 }, epoch: 0 }, options);
}
