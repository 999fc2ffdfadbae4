// Point reads on the event loop, by a connection of its own that cannot write. One statement is one snapshot: never half a batch.
import { DatabaseSync, type StatementSync } from "node:sqlite";

/** A larger value is read in the storage thread: on the loop it would hold up everybody. */
const MAX_BYTES = 65_536;

/** A row's value; `absent`: there is none; `elsewhere`: the storage thread must be asked. */
export type Found = { readonly value: string } | "absent" | "elsewhere";

export class Reader {
  readonly #db: DatabaseSync;
  readonly #one: StatementSync;

  /** The storage thread must have opened the file. */
  constructor(file: string) {
    this.#db = new DatabaseSync(file, { readOnly: true });
    this.#one = this.#db.prepare(
      `SELECT CASE WHEN octet_length(value) <= ${MAX_BYTES} THEN value END AS value FROM rows WHERE space = ? AND key = ?`,
    );
  }

  get(space: string, key: string): Found {
    try {
      const row = this.#one.get(space, key) as { value: string | null } | undefined;
      if (row === undefined) return "absent";
      return row.value === null ? "elsewhere" : { value: row.value };
    } catch {
      // Whatever it is, the storage thread meets it too and can say it.
      return "elsewhere";
    }
  }

  close(): void {
    this.#db.close();
  }
}
