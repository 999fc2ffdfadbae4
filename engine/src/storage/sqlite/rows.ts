// The statements over the table of rows. Used in the storage thread only.
import type { DatabaseSync } from "node:sqlite";
import type { Page, Row, Write } from "../../ports/store.ts";

/** A page of a range ends at so many characters of values. */
const PAGE_CHARS = 1_048_576;

const rowOf = ({ space, key, value }: Record<string, unknown>): Row => ({ space: String(space), key: String(key), value: String(value) });

export interface Rows {
  all(): Row[];
  one(space: string, key: string): Row[];
  page(space: string, after: string, prefix: string, limit: number): Page;
  /** One transaction. @throws what SQLite says, with nothing of it done. */
  commit(writes: readonly Write[]): void;
}

export function rowsOf(db: DatabaseSync): Rows {
  const upsert = db.prepare("INSERT INTO rows (space, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value");
  const remove = db.prepare("DELETE FROM rows WHERE space = ? AND key = ?");
  const all = db.prepare("SELECT space, key, value FROM rows ORDER BY space, key");
  const one = db.prepare("SELECT space, key, value FROM rows WHERE space = ? AND key = ?");
  const some = db.prepare("SELECT space, key, value FROM rows WHERE space = ? AND key > ? AND key >= ? ORDER BY key");
  return {
    all: () => all.all().map(rowOf),
    one: (space, key) => one.all(space, key).map(rowOf),
    page(space, after, prefix, limit) {
      const rows: Row[] = [];
      let size = 0;
      for (const found of some.iterate(space, after, prefix)) {
        const row = rowOf(found);
        const last = rows.at(-1);
        if (!row.key.startsWith(prefix)) break;
        if (last !== undefined && (rows.length >= limit || size >= PAGE_CHARS)) return { rows, next: last.key };
        rows.push(row);
        size += row.value.length;
      }
      return { rows };
    },
    commit(writes) {
      db.exec("BEGIN IMMEDIATE");
      try {
        for (const { space, key, value } of writes) {
          if (value === null) remove.run(space, key);
          else upsert.run(space, key, value);
        }
        db.exec("COMMIT");
      } catch (thrown) {
        if (db.isTransaction) db.exec("ROLLBACK");
        throw thrown;
      }
    },
  };
}
