// The storage thread: the only place that touches the database file. One request at a time, one transaction per request.
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Row, Write } from "../ports/store.ts";

/** What the storage thread is asked. */
export type Request =
  | { type: "load" }
  | { type: "get"; space: string; key: string }
  | { type: "range"; space: string; after: string | undefined; prefix: string; limit: number }
  | { type: "commit"; writes: readonly Write[] }
  | { type: "close" };
/** What it answers, in the order of the requests. */
export type Reply = { ok: true; rows?: readonly Row[] } | { ok: false; code: string; message: string };

const SCHEMA_VERSION = "1";
const CORRUPT = new Set([11, 26]);
const FULL = 13;
const HELD = new Set([5, 6]);

const { file } = workerData as { file: string };

class Refused extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

function refusal(thrown: unknown): { code: string; message: string } {
  if (thrown instanceof Refused) return { code: thrown.code, message: thrown.message };
  const { errcode, message } = thrown as { errcode?: number; message?: string };
  const primary = (errcode ?? 0) & 0xff;
  const text = message ?? String(thrown);
  if (CORRUPT.has(primary)) {
    return { code: "store_corrupt", message: `${file} is damaged (${text}); restore it from a copy, or move it away to start empty` };
  }
  if (primary === FULL) return { code: "store_full", message: `no space left to write ${file}` };
  if (HELD.has(primary)) return { code: "data_in_use", message: `${file} is in use: another engine runs on this data folder` };
  return { code: "store_unavailable", message: `${file}: ${text}` };
}

function checkVersion(db: DatabaseSync): void {
  db.prepare("INSERT OR IGNORE INTO meta (name, value) VALUES ('schema_version', ?)").run(SCHEMA_VERSION);
  const row = db.prepare("SELECT value FROM meta WHERE name = 'schema_version'").get() as { value: string } | undefined;
  if (row?.value !== SCHEMA_VERSION) {
    throw new Refused("store_unavailable", `${file} has schema version ${row?.value}; this engine reads version ${SCHEMA_VERSION}`);
  }
}

function open(): DatabaseSync {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const db = new DatabaseSync(file, { timeout: 1_000 });
  // The lock is taken with the first access and held until the process ends: one engine per data folder.
  // A commit changes a few rows of some hundred bytes in as many places: small pages keep the log small. Only a new file takes the size.
  db.exec(
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA page_size=2048; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=2000;",
  );
  const check = db.prepare("PRAGMA quick_check(1)").get() as { quick_check?: string } | undefined;
  if (check?.quick_check !== "ok") {
    throw new Refused(
      "store_corrupt",
      `${file} is damaged (${check?.quick_check}); restore it from a copy, or move it away to start empty`,
    );
  }
  db.exec(
    `BEGIN IMMEDIATE;
     CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
     CREATE TABLE IF NOT EXISTS rows (space TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (space, key)) STRICT;`,
  );
  checkVersion(db);
  db.exec("COMMIT");
  return db;
}

function serve(db: DatabaseSync): (request: Request) => Reply {
  const upsert = db.prepare("INSERT INTO rows (space, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value");
  const remove = db.prepare("DELETE FROM rows WHERE space = ? AND key = ?");
  const all = db.prepare("SELECT space, key, value FROM rows ORDER BY space, key");
  const one = db.prepare("SELECT space, key, value FROM rows WHERE space = ? AND key = ?");
  const some = db.prepare("SELECT space, key, value FROM rows WHERE space = ? AND key > ? AND key >= ? ORDER BY key LIMIT ?");
  const rowsOf = (found: readonly Record<string, unknown>[]): Row[] =>
    found.map(({ space, key, value }) => ({ space: String(space), key: String(key), value: String(value) }));
  const commit = (writes: readonly Write[]): void => {
    db.exec("BEGIN IMMEDIATE");
    for (const { space, key, value } of writes) {
      if (value === null) remove.run(space, key);
      else upsert.run(space, key, value);
    }
    db.exec("COMMIT");
  };
  return (request) => {
    switch (request.type) {
      case "load":
        return { ok: true, rows: rowsOf(all.all()) };
      case "get":
        return { ok: true, rows: rowsOf(one.all(request.space, request.key)) };
      case "range": {
        const { space, after = "", prefix, limit } = request;
        return { ok: true, rows: rowsOf(some.all(space, after, prefix, limit)).filter(({ key }) => key.startsWith(prefix)) };
      }
      case "commit":
        commit(request.writes);
        return { ok: true };
      case "close":
        db.close();
        return { ok: true };
    }
  };
}

let handle: ((request: Request) => Reply) | undefined;
let broken: Reply | undefined;

function answer(request: Request): Reply {
  if (broken !== undefined && (handle === undefined || request.type !== "close")) return broken;
  try {
    handle ??= serve(open());
    return handle(request);
  } catch (thrown) {
    broken = { ok: false, ...refusal(thrown) };
    return broken;
  }
}

parentPort?.on("message", (request: Request) => {
  parentPort?.postMessage(answer(request));
  if (request.type === "close") parentPort?.close();
});
