// The durable store: SQLite, written in a thread of its own. Batches that arrive while a commit is in flight share the next one.
import { join } from "node:path";
import { BusError } from "@iii/sdk";
import type {
  CommitOptions,
  MaybePromise,
  Opened,
  Page,
  RangeOptions,
  Row,
  Store,
  StoreHealth,
  StoreStats,
  Write,
} from "../ports/store.ts";
import type { Answer, Refusal, Request, Setting } from "./sqlite/protocol.ts";
import { Reader } from "./sqlite/reader.ts";
import { StorageThread } from "./sqlite/thread-client.ts";

interface Waiter {
  resolve(): void;
  reject(error: BusError): void;
}

class SqliteStore implements Store {
  readonly durability: Store["durability"];
  readonly #file: string;
  readonly #thread: StorageThread;
  readonly #stats: StoreStats = { commits: 0, writes: 0 };
  #opening: Promise<Opened> | undefined;
  #reader: Reader | undefined;
  #writes: Write[] = [];
  #waiters: Waiter[] = [];
  #busy: Promise<void> | undefined;
  #failed: BusError | undefined;

  constructor(setting: Setting) {
    this.durability = setting.sync === "full" ? "full" : "relaxed";
    this.#file = setting.file;
    this.#thread = new StorageThread(setting);
  }

  open(): Promise<Opened> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<Opened> {
    const { opened } = await this.#ask({ type: "open" });
    if (opened === undefined) throw new BusError("store_unavailable", `${this.#file} was opened without an answer`);
    if (this.#failed === undefined) this.#reader = new Reader(this.#file);
    return opened;
  }

  async load(): Promise<readonly Row[]> {
    return (await this.#ask({ type: "load" })).rows ?? [];
  }

  get(space: string, key: string): MaybePromise<string | undefined> {
    const found = this.#reader?.get(space, key) ?? "elsewhere";
    if (found === "absent") return undefined;
    return found === "elsewhere" ? this.#getElsewhere(space, key) : found.value;
  }

  async #getElsewhere(space: string, key: string): Promise<string | undefined> {
    return (await this.#ask({ type: "get", space, key })).rows?.[0]?.value;
  }

  async range(space: string, { after, prefix = "", limit }: RangeOptions): Promise<Page> {
    const { rows = [], next } = await this.#ask({ type: "range", space, after, prefix, limit });
    return next === undefined ? { rows } : { rows, next };
  }

  async #ask(request: Request): Promise<Answer> {
    const reply = await this.#thread.ask(request);
    if (!reply.ok) throw this.#fail(reply);
    return reply;
  }

  commit(writes: readonly Write[], _options: CommitOptions = {}): Promise<void> {
    if (this.#failed !== undefined) return Promise.reject(this.#failed);
    return new Promise((resolve, reject) => {
      for (const write of writes) this.#writes.push(write);
      this.#waiters.push({ resolve, reject });
      this.#busy ??= this.#flush();
    });
  }

  health(): StoreHealth {
    return { mode: "ok", damaged: [], damaged_rows: 0, scrub: "none" };
  }

  stats(): StoreStats {
    return { ...this.#stats };
  }

  async close(): Promise<void> {
    await this.#busy;
    this.#failed ??= new BusError("store_unavailable", "the store is closed");
    await this.#opening?.catch(() => undefined);
    // Before the thread's connection: the last one that closes takes the log away.
    this.#reader?.close();
    this.#reader = undefined;
    await this.#thread.ask({ type: "close" });
  }

  async #flush(): Promise<void> {
    while (this.#waiters.length > 0) {
      const writes = this.#writes;
      const waiters = this.#waiters;
      this.#writes = [];
      this.#waiters = [];
      const reply = await this.#thread.ask({ type: "commit", writes });
      if (!reply.ok) this.#refuse(waiters, this.#fail(reply));
      else this.#accept(waiters, writes.length);
    }
    this.#busy = undefined;
  }

  #accept(waiters: readonly Waiter[], rows: number): void {
    this.#stats.commits += 1;
    this.#stats.writes += rows;
    for (const waiter of waiters) waiter.resolve();
  }

  #refuse(waiters: readonly Waiter[], error: BusError): void {
    for (const waiter of [...waiters, ...this.#waiters.splice(0)]) waiter.reject(error);
  }

  #fail(refusal: Refusal): BusError {
    this.#failed ??= new BusError(refusal.code, refusal.message);
    return this.#failed;
  }
}

export interface SqliteOptions {
  readonly folder: string;
  /** Default: `engine.db`. */
  readonly file?: string;
  /** `normal`: cheaper commits, the last of which a power cut may take. Default: `full`. */
  readonly sync?: "full" | "normal";
}

/** The store in `<folder>/<file>`. One engine at a time has it. */
export function createSqliteStore({ folder, file = "engine.db", sync = "full" }: SqliteOptions): Store {
  return new SqliteStore({ file: join(folder, file), sync });
}
