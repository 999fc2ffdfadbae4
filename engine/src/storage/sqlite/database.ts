// The database file: how it is opened, and what is wrong with it when it cannot be.
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Opened } from "../../ports/store.ts";
import { storeFull } from "../full.ts";
import { takeLock } from "./lock.ts";
import type { Refusal, Setting } from "./protocol.ts";

const SCHEMA_VERSION = "1";
const CORRUPT = new Set([11, 26]);
/** SQLITE_FULL, and the two ways in which its shared index of the log cannot grow. */
const FULL = new Set([13, 10 | (19 << 8), 10 | (21 << 8)]);
const HELD = new Set([5, 6]);

class Refused extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export const isFull = (thrown: unknown): boolean => FULL.has((thrown as { errcode?: number }).errcode ?? 0);

/** What was thrown, in words that name the file and the fix. */
export function refusalOf(file: string, thrown: unknown): Refusal {
  if (isFull(thrown)) {
    const { code, message } = storeFull(dirname(file));
    return { ok: false, code, message };
  }
  if (thrown instanceof Refused) return { ok: false, code: thrown.code, message: thrown.message };
  const { errcode, message } = thrown as { errcode?: number; message?: string };
  const primary = (errcode ?? 0) & 0xff;
  const text = message ?? String(thrown);
  if (CORRUPT.has(primary)) return { ok: false, ...damaged(file, text) };
  if (HELD.has(primary)) return { ok: false, code: "data_in_use", message: `${file} is in use: another engine runs on this data folder` };
  return { ok: false, code: "store_unavailable", message: `${file}: ${text}` };
}

const damaged = (file: string, text: string) => ({
  code: "store_corrupt",
  message: `${file} is damaged (${text}); restore it from a copy, or move it away to start empty`,
});

function checkVersion(db: DatabaseSync, file: string): void {
  db.prepare("INSERT OR IGNORE INTO meta (name, value) VALUES ('schema_version', ?)").run(SCHEMA_VERSION);
  const row = db.prepare("SELECT value FROM meta WHERE name = 'schema_version'").get() as { value: string } | undefined;
  if (row?.value !== SCHEMA_VERSION) {
    throw new Refused("store_unavailable", `${file} has schema version ${row?.value}; this engine reads version ${SCHEMA_VERSION}`);
  }
}

export interface Database {
  readonly db: DatabaseSync;
  readonly opened: Opened;
  close(): void;
}

/** SQLite removes its log when the last connection closes: one that still has something in it was left behind. */
function wasClosed(file: string): boolean {
  const log = `${file}-wal`;
  return !existsSync(log) || statSync(log).size === 0;
}

/** @throws what `refusalOf` puts into words. */
export function openDatabase({ file, sync }: Setting): Database {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const release = takeLock(file);
  try {
    const opened = { clean: wasClosed(file), migrated: false };
    const db = connect(file, sync);
    const close = (): void => {
      db.close();
      release();
    };
    return { db, opened, close };
  } catch (thrown) {
    release();
    throw thrown;
  }
}

function connect(file: string, sync: Setting["sync"]): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: 1_000 });
  // A commit changes a few rows of some hundred bytes in as many places: small pages keep the log small. Only a new file takes the size.
  db.exec(
    `PRAGMA page_size=2048; PRAGMA journal_mode=WAL; PRAGMA synchronous=${sync}; PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=2000;`,
  );
  const check = db.prepare("PRAGMA quick_check(1)").get() as { quick_check?: string } | undefined;
  if (check?.quick_check !== "ok") {
    const { code, message } = damaged(file, String(check?.quick_check));
    throw new Refused(code, message);
  }
  db.exec(
    `BEGIN IMMEDIATE;
     CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
     CREATE TABLE IF NOT EXISTS rows (space TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (space, key)) STRICT;`,
  );
  checkVersion(db, file);
  db.exec("COMMIT");
  return db;
}
