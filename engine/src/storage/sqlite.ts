// The durable store: SQLite in a thread of its own. Batches that arrive while a commit is in flight share the next one.
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { BusError } from "@iii/sdk";
import type { Page, RangeOptions, Row, Store, StoreStats, Write } from "../ports/store.ts";
import type { Reply, Request } from "./sqlite-thread.ts";

interface Waiter {
  resolve(): void;
  reject(error: BusError): void;
}

/** One thread, asked one thing at a time. */
class Thread {
  readonly #worker: Worker;
  readonly #waiting: ((reply: Reply) => void)[] = [];
  #ended: Reply | undefined;

  constructor(file: string) {
    this.#worker = new Worker(new URL("./sqlite-thread.ts", import.meta.url), { workerData: { file } });
    this.#worker.on("message", (reply: Reply) => this.#waiting.shift()?.(reply));
    this.#worker.on("error", (error: Error) => this.#end(`the storage thread failed: ${error.message}`));
    this.#worker.on("exit", () => this.#end("the storage thread has ended"));
  }

  ask(request: Request): Promise<Reply> {
    if (this.#ended !== undefined) return Promise.resolve(this.#ended);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#worker.postMessage(request);
    });
  }

  #end(message: string): void {
    this.#ended ??= { ok: false, code: "store_unavailable", message };
    for (const resolve of this.#waiting.splice(0)) resolve(this.#ended);
  }
}

class SqliteStore implements Store {
  readonly durability = "full";
  readonly #thread: Thread;
  readonly #stats: StoreStats = { commits: 0, writes: 0 };
  #writes: Write[] = [];
  #waiters: Waiter[] = [];
  #busy: Promise<void> | undefined;
  #failed: BusError | undefined;

  constructor(file: string) {
    this.#thread = new Thread(file);
  }

  load(): Promise<readonly Row[]> {
    return this.#read({ type: "load" });
  }

  async get(space: string, key: string): Promise<string | undefined> {
    return (await this.#read({ type: "get", space, key }))[0]?.value;
  }

  async range(space: string, { after, prefix = "", limit }: RangeOptions): Promise<Page> {
    const rows = await this.#read({ type: "range", space, after, prefix, limit });
    const last = rows.at(-1);
    return last === undefined ? { rows } : { rows, next: last.key };
  }

  async #read(request: Request): Promise<readonly Row[]> {
    const reply = await this.#thread.ask(request);
    if (!reply.ok) throw this.#fail(reply);
    return reply.rows ?? [];
  }

  commit(writes: readonly Write[]): Promise<void> {
    if (this.#failed !== undefined) return Promise.reject(this.#failed);
    return new Promise((resolve, reject) => {
      for (const write of writes) this.#writes.push(write);
      this.#waiters.push({ resolve, reject });
      this.#busy ??= this.#flush();
    });
  }

  stats(): StoreStats {
    return { ...this.#stats };
  }

  async close(): Promise<void> {
    await this.#busy;
    this.#failed ??= new BusError("store_unavailable", "the store is closed");
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

  #fail(reply: { code: string; message: string }): BusError {
    this.#failed ??= new BusError(reply.code, reply.message);
    return this.#failed;
  }
}

/** Opens `<folder>/engine.db`. Errors of opening come from `load`. */
export function createSqliteStore(options: { folder: string }): Store {
  return new SqliteStore(join(options.folder, "engine.db"));
}
