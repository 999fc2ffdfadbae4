// The floor of durable work: SQLite alone in a process, FULL, on the disk that the engine uses. Argument: a folder.
// Asked for `<case> <ms>`; every write changes its row, because SQLite writes nothing for a row that stays as it is.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { inFlight, sequential } from "../support/load.ts";
import { play } from "../support/processes.ts";

const [folder = ".", ms = "600"] = process.argv.slice(2);
const db = new DatabaseSync(join(folder, "floor.db"));
db.exec(
  "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE floor (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT",
);
const put = db.prepare("INSERT INTO floor (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value");
const get = db.prepare("SELECT value FROM floor WHERE key = ?");
const begin = db.prepare("BEGIN IMMEDIATE");
const commit = db.prepare("COMMIT");

const filling = "x".repeat(1_000);
const key = (n: number): string => `key-${n % 1_000}`;
const write = (n: number): void => void put.run(key(n), JSON.stringify({ n, filling }));

let waiting: { n: number; done: () => void }[] = [];
/** All writes of one turn of the event loop in one transaction. */
function flush(): void {
  const batch = waiting;
  waiting = [];
  begin.run();
  for (const { n } of batch) write(n);
  commit.run();
  for (const { done } of batch) done();
}
function grouped(n: number): Promise<void> {
  if (waiting.length === 0) setImmediate(flush);
  return new Promise((done) => waiting.push({ n, done }));
}

const [{ synchronous }] = db.prepare("PRAGMA synchronous").all() as [{ synchronous: number }];
play(
  { synchronous },
  {
    alone: () => sequential(async (n) => write(n), Number(ms)),
    together: () => inFlight(grouped, 64, Number(ms)),
    read: () => sequential(async (n) => get.get(key(n)), Number(ms) / 4),
  },
);
