// The store in a PostgreSQL database: one engine per database, held by an advisory lock of the session that writes.
// A session that is lost, or a COMMIT whose answer is, ends the store: what was committed is told by the rows, to the next engine.
import { createRequire } from "node:module";
import { BusError, messageOf } from "@iii/sdk";
import type pg from "pg";
import type { CommitOptions, Opened, Page, RangeOptions, Row, Store, StoreHealth, StoreStats, Write } from "../ports/store.ts";
import { CHANGE, endOf, type Found, INDEXED, longOf, ONE, parametersOf, rowOf, SCHEMA, SOME, VERSION } from "./postgres/rows.ts";

/** "iii" and a number of our own: whoever else takes advisory locks in this database has others. */
const LOCK = 0x696969_01;
const CONNECT_MS = 10_000;
const READERS = 4;
const DAMAGED = 100;

interface Waiter {
  resolve(): void;
  reject(error: BusError): void;
}

/** What the server says, as the store says it. 53100: its disk is full. */
function refusal(where: string, thrown: unknown): BusError {
  if (thrown instanceof BusError) return thrown;
  const { code } = thrown as { code?: string };
  if (code === "53100") return new BusError("STORE_FULL", `no space left on the disk of ${where}; make some, work goes on by itself`);
  return new BusError("store_unavailable", `${where}: ${messageOf(thrown)}`, { cause: thrown });
}

class PostgresStore implements Store {
  readonly durability = "full";
  /** Host and database: the address has a password in it. */
  readonly #where: string;
  readonly #writer: pg.Client;
  readonly #readers: pg.Pool;
  readonly #lost: (error: BusError) => void;
  readonly #stats: StoreStats = { commits: 0, writes: 0 };
  #opened: Promise<Opened> | undefined;
  readonly #damaged = new Map<string, string>();
  #writes: Write[] = [];
  #waiters: Waiter[] = [];
  #busy: Promise<void> | undefined;
  #failed: BusError | undefined;
  #full = false;
  #closing = false;

  constructor(url: string, lost: (error: BusError) => void) {
    const { host, pathname } = new URL(url);
    this.#where = `postgres://${host}${pathname}`;
    this.#lost = lost;
    const session = { connectionString: url, connectionTimeoutMillis: CONNECT_MS, keepAlive: true, application_name: "iii" };
    // Loaded here: its client is of no use to engines with another store.
    const { Client, Pool } = createRequire(import.meta.url)("pg") as typeof pg;
    this.#writer = new Client(session);
    this.#readers = new Pool({ ...session, max: READERS, idleTimeoutMillis: 0 });
    this.#writer.on("error", (thrown) => this.#end(thrown));
    this.#writer.on("end", () => this.#end(new Error("the session that writes has ended")));
    // A reader that is lost fails the read that it has, and the next read gets another.
    this.#readers.on("error", () => undefined);
  }

  open(): Promise<Opened> {
    this.#opened ??= this.#open().catch((thrown: unknown) => {
      throw this.#fail(thrown);
    });
    return this.#opened;
  }

  async load(): Promise<readonly Row[]> {
    const found = await this.#read("SELECT space, key, value, sum FROM iii_rows ORDER BY space, key", []);
    return found.flatMap((one) => this.#whole(one) ?? []);
  }

  async get(space: string, key: string): Promise<string | undefined> {
    const name = [Buffer.from(space), Buffer.from(key)] as const;
    const [found] = await this.#read(ONE, [name[0].subarray(0, INDEXED), name[1].subarray(0, INDEXED), longOf(...name)]);
    if (found === undefined) return undefined;
    const row = this.#whole(found);
    if (row !== undefined) return row.value;
    throw new BusError("store_corrupt", `the row ${space}/${key} is damaged: its checksum does not fit`, { details: { space, key } });
  }

  async range(space: string, { after, prefix = "", limit }: RangeOptions): Promise<Page> {
    const [start, from] = [Buffer.from(after ?? ""), Buffer.from(prefix)];
    const isFirst = after === undefined || Buffer.compare(from, start) > 0;
    const found = await this.#read(SOME, [Buffer.from(space), isFirst ? from : start, isFirst, endOf(prefix), limit + 1]);
    const page = found.slice(0, limit);
    const rows = page.flatMap((one) => this.#whole(one) ?? []);
    const damaged = page.filter((one) => rowOf(one) === undefined).map(({ key }) => key.toString());
    const last = page.at(-1);
    const isMore = last !== undefined && Number(last.total) > page.length;
    return { rows, ...(damaged.length === 0 ? {} : { damaged }), ...(isMore ? { next: last.key.toString() } : {}) };
  }

  /** The server keeps no space back for us: `reserve` changes nothing here. */
  commit(writes: readonly Write[], _options: CommitOptions = {}): Promise<void> {
    if (this.#failed !== undefined) return Promise.reject(this.#failed);
    return new Promise((resolve, reject) => {
      for (const write of writes) this.#writes.push(write);
      this.#waiters.push({ resolve, reject });
      this.#busy ??= this.#flush();
    });
  }

  /** Rows are looked at when they are read; the pages below them are the server's to check. */
  health(): StoreHealth {
    const damaged = [...this.#damaged.values()];
    return { mode: this.#full ? "full" : "ok", damaged: damaged.slice(0, DAMAGED), damaged_rows: damaged.length, scrub: "none" };
  }

  stats(): StoreStats {
    return { ...this.#stats };
  }

  async close(): Promise<void> {
    await this.#busy;
    this.#closing = true;
    if (this.#opened !== undefined && this.#failed === undefined) {
      await this.#writer.query("UPDATE iii_meta SET value = 'yes' WHERE name = 'clean'").catch(() => undefined); // then the next start says so
    }
    this.#failed ??= new BusError("store_unavailable", "the store is closed");
    await Promise.allSettled([this.#writer.end(), this.#readers.end()]);
  }

  async #open(): Promise<Opened> {
    await this.#writer.connect();
    // Held by the session: whoever has it writes, and writes through this session only.
    const { rows } = await this.#writer.query<{ held: boolean }>("SELECT pg_try_advisory_lock($1) AS held", [LOCK]);
    if (rows[0]?.held !== true) throw new BusError("data_in_use", `${this.#where} is in use: another engine runs on this database`);
    await this.#writer.query("SET synchronous_commit = on");
    const { rows: settings } = await this.#writer.query<{ fsync: string }>("SHOW fsync");
    if (settings[0]?.fsync !== "on") {
      throw new BusError("store_unavailable", `${this.#where} runs with fsync=${settings[0]?.fsync}: what it acknowledges is not on disk`);
    }
    await this.#writer.query(`BEGIN; ${SCHEMA} COMMIT`);
    const { rows: said } = await this.#writer.query<{ name: string; value: string }>("SELECT name, value FROM iii_meta");
    const meta = new Map(said.map(({ name, value }) => [name, value]));
    const version = meta.get("schema_version");
    if (version !== VERSION) {
      throw new BusError("store_unavailable", `${this.#where} has schema version ${version}; this engine reads version ${VERSION}`);
    }
    await this.#writer.query("UPDATE iii_meta SET value = 'no' WHERE name = 'clean'");
    return { clean: meta.get("clean") === "yes", migrated: false };
  }

  /** The row, if it is as it was written; one that is not is remembered, so that `health` names it. */
  #whole(found: Found): Row | undefined {
    const row = rowOf(found);
    const name = `${found.space} ${found.key}`;
    if (row === undefined) this.#damaged.set(name, `${name}: its checksum does not fit`);
    else if (this.#damaged.size > 0) this.#damaged.delete(name);
    return row;
  }

  async #read(text: string, values: unknown[]): Promise<readonly Found[]> {
    await this.open();
    try {
      return (await this.#readers.query<Found>(text, values)).rows;
    } catch (thrown) {
      throw refusal(this.#where, thrown);
    }
  }

  async #flush(): Promise<void> {
    await this.open().catch(() => undefined);
    while (this.#waiters.length > 0) {
      const writes = this.#writes;
      const waiters = this.#waiters;
      this.#writes = [];
      this.#waiters = [];
      await this.#change(writes).then(
        () => this.#accept(waiters, writes.length),
        (thrown: unknown) => this.#refuse(waiters, thrown),
      );
    }
    this.#busy = undefined;
  }

  async #change(writes: readonly Write[]): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed;
    if (writes.length > 0) await this.#writer.query(CHANGE, parametersOf(writes));
  }

  #accept(waiters: readonly Waiter[], rows: number): void {
    this.#full = false;
    this.#stats.commits += 1;
    this.#stats.writes += rows;
    for (const waiter of waiters) waiter.resolve();
  }

  /** What waited behind a failed batch was planned on what it would have written. */
  #refuse(waiters: readonly Waiter[], thrown: unknown): void {
    const refused = refusal(this.#where, thrown);
    this.#full = refused.code === "STORE_FULL";
    const error = this.#full ? refused : this.#fail(refused);
    this.#writes = [];
    for (const waiter of [...waiters, ...this.#waiters.splice(0)]) waiter.reject(error);
  }

  /** The session that writes is gone, and the lock with it: another engine may write from now on. */
  #end(thrown: unknown): void {
    if (this.#closing) return;
    const first = this.#failed === undefined;
    const error = this.#fail(thrown);
    if (first) this.#lost(error);
  }

  #fail(thrown: unknown): BusError {
    this.#failed ??= refusal(this.#where, thrown);
    return this.#failed;
  }
}

/** The store in the database at `url` (`postgres://user:password@host:port/database`). `lost` hears that its session has ended. */
export function createPostgresStore({ url, lost = () => undefined }: { url: string; lost?: (error: BusError) => void }): Store {
  return new PostgresStore(url, lost);
}
