import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createLedger } from "../../src/builtin/storage/ledger.ts";
import { createSqliteStore } from "../../src/storage/sqlite.ts";

const folders: string[] = [];
afterEach(() => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true });
});

describe("ledger", () => {
  test("what follows from batches runs in the order of the batches, also of those that write nothing", async () => {
    const folder = mkdtempSync(join(tmpdir(), "ledger-"));
    folders.push(folder);
    const store = createSqliteStore({ folder });
    const ledger = createLedger({
      store,
      fatal(error) {
        throw error;
      },
    });
    await ledger.load();
    const seen: string[] = [];
    const batch = (name: string, writes: boolean): Promise<void> => {
      const made = ledger.batch();
      if (writes) made.put("s", name, "1");
      made.after(() => seen.push(name));
      return made.commit();
    };
    // The first is on its way to the disk alone; the others share the next transaction.
    await Promise.all([batch("1", true), batch("2", true), batch("3", false), batch("4", true), batch("5", false), batch("6", false)]);
    await store.close();
    expect(seen).toEqual(["1", "2", "3", "4", "5", "6"]);
  });
});
