// The durable store: SQLite, written in a thread of its own, read by key on the loop.
import { dirname, join } from "node:path";
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
import { Commits } from "./commits.ts";
import type { Answer, Refusal, Request, Setting } from "./sqlite/protocol.ts";
import { Reader } from "./sqlite/reader.ts";
import { StorageThread } from "./sqlite/thread-client.ts";

/** How often the space is looked at, beside each commit. */
const LOOK_MS = 30_000;
/** The same while there is too little; and after the start, which needs no reserve to be quick. */
const LOOK_SOON_MS = 1_000;

const errorOf = ({ code, message }: Refusal): BusError => new BusError(code, message);

class SqliteStore implements Store {
  readonly durability: Store["durability"];
  readonly #file: string;
  readonly #thread: StorageThread;
  readonly #commits: Commits;
  #opening: Promise<Opened> | undefined;
  #reader: Reader | undefined;
  #looking: NodeJS.Timeout | undefined;

  constructor(setting: Setting) {
    this.durability = setting.sync === "full" ? "full" : "relaxed";
    this.#file = setting.file;
    this.#thread = new StorageThread(setting);
    this.#commits = new Commits(dirname(setting.file), (writes, small) => this.#transact(writes, small));
  }

  open(): Promise<Opened> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<Opened> {
    const { opened } = await this.#ask({ type: "open" });
    if (opened === undefined) throw new BusError("store_unavailable", `${this.#file} was opened without an answer`);
    if (this.#commits.failed === undefined) {
      this.#reader = new Reader(this.#file);
      this.#lookAgain(LOOK_SOON_MS);
    }
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
    if (!reply.ok) throw this.#commits.fail(errorOf(reply));
    return reply;
  }

  commit(writes: readonly Write[], options?: CommitOptions): Promise<void> {
    return this.#commits.add(writes, options);
  }

  async #transact(writes: readonly Write[], small: boolean): Promise<BusError | undefined> {
    const reply = await this.#thread.ask({ type: "commit", writes, small });
    this.#setFull(reply.ok ? (reply.full ?? false) : reply.code === "STORE_FULL");
    return reply.ok ? undefined : errorOf(reply);
  }

  #setFull(full: boolean): void {
    if (full === this.#commits.full) return;
    this.#commits.full = full;
    this.#lookAgain(LOOK_SOON_MS);
  }

  #lookAgain(ms: number): void {
    clearTimeout(this.#looking);
    this.#looking = setTimeout(() => {
      void this.#thread.ask({ type: "space" }).then((reply) => {
        if (this.#reader === undefined) return;
        this.#commits.full = reply.ok ? (reply.full ?? false) : this.#commits.full;
        this.#lookAgain(this.#commits.full ? LOOK_SOON_MS : LOOK_MS);
      });
    }, ms).unref();
  }

  health(): StoreHealth {
    return { mode: this.#commits.full ? "full" : "ok", damaged: [], damaged_rows: 0, scrub: "none" };
  }

  stats(): StoreStats {
    return this.#commits.stats;
  }

  async close(): Promise<void> {
    clearTimeout(this.#looking);
    await this.#commits.settled();
    this.#commits.fail(new BusError("store_unavailable", "the store is closed"));
    await this.#opening?.catch(() => undefined);
    // Before the thread's connection: the last one that closes takes the log away.
    this.#reader?.close();
    this.#reader = undefined;
    await this.#thread.ask({ type: "close" });
  }
}

export interface SqliteOptions {
  readonly folder: string;
  /** Default: `engine.db`. */
  readonly file?: string;
  /** `normal`: cheaper commits, the last of which a power cut may take; without a reserve. Default: `full`. */
  readonly sync?: "full" | "normal";
}

/** The store in `<folder>/<file>`. One engine at a time has it. */
export function createSqliteStore({ folder, file = "engine.db", sync = "full" }: SqliteOptions): Store {
  return new SqliteStore({ file: join(folder, file), sync, reserve: sync === "full" });
}
