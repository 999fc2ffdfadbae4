// The store in a PostgreSQL database: one engine per database, held by an advisory lock of the session that writes.
// A session that is lost, or a COMMIT whose answer is, ends the store: what was committed is told by the rows, to the next engine.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { BusError, messageOf } from "@iii/sdk";
import pg from "pg";
import type { Page, RangeOptions, Row, Store, StoreStats, Write } from "../ports/store.ts";

/** "iii" and a number of our own: whoever else takes advisory locks in this database has others. */
const LOCK = 0x696969_01;
const VERSION = "1";
/** A B-tree entry holds 2,700 bytes at most; longer names are told apart by their hash. */
const INDEXED = 1_000;
const PAGE_BYTES = 1_048_576;
const CONNECT_MS = 10_000;
const READERS = 4;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS iii_meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS iii_rows (space bytea NOT NULL, key bytea NOT NULL, long bytea NOT NULL, value bytea NOT NULL, sum integer NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS iii_rows_name ON iii_rows (substring(space FROM 1 FOR ${INDEXED}), substring(key FROM 1 FOR ${INDEXED}), long);
INSERT INTO iii_meta (name, value) VALUES ('schema_version', '${VERSION}') ON CONFLICT DO NOTHING;`;

/** One statement is one transaction: a whole batch costs one round trip and one sync. */
const CHANGE = `
WITH gone AS (
  DELETE FROM iii_rows r USING unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS d (space, key, long)
  WHERE substring(r.space FROM 1 FOR ${INDEXED}) = substring(d.space FROM 1 FOR ${INDEXED})
    AND substring(r.key FROM 1 FOR ${INDEXED}) = substring(d.key FROM 1 FOR ${INDEXED}) AND r.long = d.long)
INSERT INTO iii_rows (space, key, long, value, sum)
SELECT * FROM unnest($4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::integer[])
ON CONFLICT (substring(space FROM 1 FOR ${INDEXED}), substring(key FROM 1 FOR ${INDEXED}), long) DO UPDATE SET value = excluded.value, sum = excluded.sum`;

const ONE = `SELECT space, key, value, sum FROM iii_rows WHERE substring(space FROM 1 FOR ${INDEXED}) = $1
  AND substring(key FROM 1 FOR ${INDEXED}) = $2 AND long = $3`;

/** Sizes are known without reading the values: a page ends where it has enough of them. */
const SOME = `SELECT space, key, value, sum FROM (
  SELECT space, key, value, sum, sum(octet_length(value)) OVER (ORDER BY substring(key FROM 1 FOR ${INDEXED}), key) - octet_length(value) AS before
  FROM iii_rows
  WHERE substring(space FROM 1 FOR ${INDEXED}) = substring($1::bytea FROM 1 FOR ${INDEXED}) AND space = $1
    AND substring(key FROM 1 FOR ${INDEXED}) >= substring($2::bytea FROM 1 FOR ${INDEXED}) AND (key > $2 OR key = $2 AND $3)
    AND substring(key FROM 1 FOR ${INDEXED}) <= substring($4::bytea FROM 1 FOR ${INDEXED}) AND key < $4
  ORDER BY substring(key FROM 1 FOR ${INDEXED}), key LIMIT $5) page
  WHERE before < ${PAGE_BYTES}`;

/** Above every UTF-8 text. */
const LAST = Buffer.from([0xff]);
const NONE = Buffer.alloc(0);

interface Found {
  readonly space: Buffer;
  readonly key: Buffer;
  readonly value: Buffer;
  readonly sum: number;
}

const sumOf = (space: Buffer, key: Buffer, value: Buffer): number => crc32(value, crc32(key, crc32(space))) | 0;

/** What tells long names apart; empty for the others. */
function longOf(space: Buffer, key: Buffer): Buffer {
  if (space.length <= INDEXED && key.length <= INDEXED) return NONE;
  return createHash("sha256").update(String(space.length)).update(space).update(key).digest();
}

/** The smallest text above all that start with `prefix`. */
function endOf(prefix: string): Buffer {
  const bytes = Buffer.from(prefix);
  if (bytes.length === 0) return LAST;
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) + 1; // no byte of UTF-8 is 0xff
  return bytes;
}

/** @throws BusError `store_corrupt` naming the row: a value that was changed behind our back is never served. */
function rowOf({ space, key, value, sum }: Found): Row {
  const row = { space: space.toString(), key: key.toString(), value: value.toString() };
  if (sumOf(space, key, value) === sum) return row;
  throw new BusError("store_corrupt", `the row ${row.space}/${row.key} is damaged: its checksum does not fit`, {
    details: { space: row.space, key: row.key },
  });
}

/** The last change of each row counts. */
function parametersOf(writes: readonly Write[]): unknown[] {
  const last = new Map(writes.map((write) => [JSON.stringify([write.space, write.key]), write]));
  const gone: [Buffer[], Buffer[], Buffer[]] = [[], [], []];
  const put: [Buffer[], Buffer[], Buffer[], Buffer[], number[]] = [[], [], [], [], []];
  for (const write of last.values()) {
    const [space, key] = [Buffer.from(write.space), Buffer.from(write.key)];
    const name = [space, key, longOf(space, key)] as const;
    if (write.value === null) name.forEach((part, at) => void gone[at]?.push(part));
    else {
      const value = Buffer.from(write.value);
      name.forEach((part, at) => void put[at as 0 | 1 | 2].push(part));
      put[3].push(value);
      put[4].push(sumOf(space, key, value));
    }
  }
  return [...gone, ...put];
}

interface Waiter {
  resolve(): void;
  reject(error: BusError): void;
}

/** What the server says, as the store says it. 53100: its disk is full. */
function refusal(where: string, thrown: unknown): BusError {
  if (thrown instanceof BusError) return thrown;
  const { code } = thrown as { code?: string };
  if (code === "53100") return new BusError("store_full", `no space left on the disk of ${where}`);
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
  #opened: Promise<void> | undefined;
  #writes: Write[] = [];
  #waiters: Waiter[] = [];
  #busy: Promise<void> | undefined;
  #failed: BusError | undefined;
  #closing = false;

  constructor(url: string, lost: (error: BusError) => void) {
    const { host, pathname } = new URL(url);
    this.#where = `postgres://${host}${pathname}`;
    this.#lost = lost;
    const session = { connectionString: url, connectionTimeoutMillis: CONNECT_MS, keepAlive: true, application_name: "iii" };
    this.#writer = new pg.Client(session);
    this.#readers = new pg.Pool({ ...session, max: READERS, idleTimeoutMillis: 0 });
    this.#writer.on("error", (thrown) => this.#end(thrown));
    this.#writer.on("end", () => this.#end(new Error("the session that writes has ended")));
    // A reader that is lost fails the read that it has, and the next read gets another.
    this.#readers.on("error", () => undefined);
  }

  open(): Promise<void> {
    this.#opened ??= this.#open().catch((thrown: unknown) => {
      throw this.#fail(thrown);
    });
    return this.#opened;
  }

  async load(): Promise<readonly Row[]> {
    await this.open();
    return (await this.#read("SELECT space, key, value, sum FROM iii_rows ORDER BY space, key", [])).map(rowOf);
  }

  async get(space: string, key: string): Promise<string | undefined> {
    const name = [Buffer.from(space), Buffer.from(key)] as const;
    const [found] = await this.#read(ONE, [name[0].subarray(0, INDEXED), name[1].subarray(0, INDEXED), longOf(...name)]);
    return found === undefined ? undefined : rowOf(found).value;
  }

  async range(space: string, { after, prefix = "", limit }: RangeOptions): Promise<Page> {
    const [start, from] = [Buffer.from(after ?? ""), Buffer.from(prefix)];
    const inclusive = after === undefined || Buffer.compare(from, start) > 0;
    const found = await this.#read(SOME, [Buffer.from(space), inclusive ? from : start, inclusive, endOf(prefix), limit]);
    const rows = found.map(rowOf);
    const last = rows.at(-1);
    return last === undefined ? { rows } : { rows, next: last.key };
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
    this.#closing = true;
    this.#failed ??= new BusError("store_unavailable", "the store is closed");
    await Promise.allSettled([this.#writer.end(), this.#readers.end()]);
  }

  async #open(): Promise<void> {
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
    const { rows: versions } = await this.#writer.query<{ value: string }>("SELECT value FROM iii_meta WHERE name = 'schema_version'");
    if (versions[0]?.value === VERSION) return;
    throw new BusError(
      "store_unavailable",
      `${this.#where} has schema version ${versions[0]?.value}; this engine reads version ${VERSION}`,
    );
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
      try {
        if (this.#failed !== undefined) throw this.#failed;
        if (writes.length > 0) await this.#writer.query(CHANGE, parametersOf(writes));
        this.#stats.commits += 1;
        this.#stats.writes += writes.length;
        for (const waiter of waiters) waiter.resolve();
      } catch (thrown) {
        const error = this.#fail(thrown);
        for (const waiter of [...waiters, ...this.#waiters.splice(0)]) waiter.reject(error);
      }
    }
    this.#busy = undefined;
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
