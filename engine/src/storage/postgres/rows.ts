// The one table of the PostgreSQL store: its statements, and rows on their way in and out. Names and values are bytes there, so that
// they sort as they must and hold what text of the server cannot. To look at them: `convert_from(key, 'UTF8')`.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Row, Write } from "../../ports/store.ts";

export const VERSION = "1";
/** A B-tree entry holds 2,700 bytes at most; longer names are told apart by their hash. */
export const INDEXED = 1_000;
const PAGE_BYTES = 1_048_576;

export const SCHEMA = `
CREATE TABLE IF NOT EXISTS iii_meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS iii_rows (space bytea NOT NULL, key bytea NOT NULL, long bytea NOT NULL, value bytea NOT NULL, sum integer NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS iii_rows_name ON iii_rows (substring(space FROM 1 FOR ${INDEXED}), substring(key FROM 1 FOR ${INDEXED}), long);
INSERT INTO iii_meta (name, value) VALUES ('schema_version', '${VERSION}'), ('clean', 'yes') ON CONFLICT DO NOTHING;`;

/** One statement is one transaction: a whole batch costs one round trip and one sync. */
export const CHANGE = `
WITH gone AS (
  DELETE FROM iii_rows r USING unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS d (space, key, long)
  WHERE substring(r.space FROM 1 FOR ${INDEXED}) = substring(d.space FROM 1 FOR ${INDEXED})
    AND substring(r.key FROM 1 FOR ${INDEXED}) = substring(d.key FROM 1 FOR ${INDEXED}) AND r.long = d.long)
INSERT INTO iii_rows (space, key, long, value, sum)
SELECT * FROM unnest($4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::integer[])
ON CONFLICT (substring(space FROM 1 FOR ${INDEXED}), substring(key FROM 1 FOR ${INDEXED}), long) DO UPDATE SET value = excluded.value, sum = excluded.sum`;

export const ONE = `SELECT space, key, value, sum FROM iii_rows WHERE substring(space FROM 1 FOR ${INDEXED}) = $1
  AND substring(key FROM 1 FOR ${INDEXED}) = $2 AND long = $3`;

/** Sizes are known without reading the values: a page ends where it has enough of them. `total` counts what the limit let through. */
export const SOME = `SELECT space, key, value, sum, total FROM (
  SELECT *, sum(octet_length(value)) OVER (ORDER BY substring(key FROM 1 FOR ${INDEXED}), key) - octet_length(value) AS before,
    count(*) OVER () AS total
  FROM (
    SELECT space, key, value, sum FROM iii_rows
    WHERE substring(space FROM 1 FOR ${INDEXED}) = substring($1::bytea FROM 1 FOR ${INDEXED}) AND space = $1
      AND substring(key FROM 1 FOR ${INDEXED}) >= substring($2::bytea FROM 1 FOR ${INDEXED}) AND (key > $2 OR key = $2 AND $3)
      AND substring(key FROM 1 FOR ${INDEXED}) <= substring($4::bytea FROM 1 FOR ${INDEXED}) AND key < $4
    ORDER BY substring(key FROM 1 FOR ${INDEXED}), key LIMIT $5) found) page
  WHERE before < ${PAGE_BYTES} ORDER BY before`;

/** Above every UTF-8 text. */
const LAST = Buffer.from([0xff]);
const NONE = Buffer.alloc(0);

export interface Found {
  readonly space: Buffer;
  readonly key: Buffer;
  readonly value: Buffer;
  readonly sum: number;
  readonly total?: string;
}

const sumOf = (space: Buffer, key: Buffer, value: Buffer): number => crc32(value, crc32(key, crc32(space))) | 0;

/** What tells long names apart; empty for the others. */
export function longOf(space: Buffer, key: Buffer): Buffer {
  if (space.length <= INDEXED && key.length <= INDEXED) return NONE;
  return createHash("sha256").update(String(space.length)).update(space).update(key).digest();
}

/** The smallest text above all that start with `prefix`. */
export function endOf(prefix: string): Buffer {
  const bytes = Buffer.from(prefix);
  if (bytes.length === 0) return LAST;
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) + 1; // no byte of UTF-8 is 0xff
  return bytes;
}

/** The row, or undefined when it is damaged. */
export function rowOf({ space, key, value, sum }: Found): Row | undefined {
  if (sumOf(space, key, value) !== sum) return undefined;
  return { space: space.toString(), key: key.toString(), value: value.toString() };
}

/** The last change of each row counts. */
export function parametersOf(writes: readonly Write[]): unknown[] {
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
