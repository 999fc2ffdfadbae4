import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { BusError } from "@iii/sdk";
import { afterEach, describe, expect, test } from "vitest";
import { createMemoryStore, type MemoryStore } from "../../src/storage/memory.ts";
import { createSqliteStore } from "../../src/storage/sqlite.ts";
import { storeCases } from "./store.case.ts";

const folders: string[] = [];
const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), "store-"));
  folders.push(made);
  return made;
};
const cleanup = (): void => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true });
};

storeCases("memory", {
  open: () => createMemoryStore(),
  reopen: (store) => (store as MemoryStore).reopen(),
  failing: () => createMemoryStore({ fault: () => new BusError("store_unavailable", "a failed sync") }),
  cleanup() {},
});

test("memory: what finds no space takes along what was planned after it, and the store goes on", async () => {
  let full = true;
  const store = createMemoryStore({ fault: () => (full ? new BusError("STORE_FULL", "no space") : undefined) });
  const write = (key: string) => store.commit([{ space: "s", key, value: "v" }]);
  const outcomes = await Promise.allSettled([write("a"), write("b")]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  full = false;
  await write("c");
  expect((await store.range("s", { limit: 9 })).rows.map(({ key }) => key)).toEqual(["c"]);
});

let current = "";
storeCases("sqlite", {
  open() {
    current = folder();
    return createSqliteStore({ folder: current });
  },
  async reopen(store) {
    await store.close();
    return createSqliteStore({ folder: current });
  },
  async failing() {
    current = folder();
    const first = createSqliteStore({ folder: current });
    await first.load();
    await first.close();
    const db = new DatabaseSync(join(current, "engine.db"));
    db.exec("CREATE TRIGGER refuse BEFORE INSERT ON rows BEGIN SELECT RAISE(ABORT, 'refused'); END");
    db.close();
    return createSqliteStore({ folder: current });
  },
  cleanup,
});

describe("sqlite store", () => {
  afterEach(cleanup);

  test("batches that arrive while a commit is in flight share the next transaction", async () => {
    const store = createSqliteStore({ folder: folder() });
    await store.load();
    await Promise.all(Array.from({ length: 40 }, (_, n) => store.commit([{ space: "s", key: String(n), value: "v" }])));
    expect(store.stats()).toEqual({ commits: 2, writes: 40 });
    await store.close();
  });

  test("the folder that it makes is its owner's alone: transcripts are in it", async () => {
    const made = join(folder(), "data");
    const store = createSqliteStore({ folder: made });
    await store.load();
    expect(statSync(made).mode & 0o077).toBe(0);
    await store.close();
  });

  test("a damaged file is named", async () => {
    const where = folder();
    writeFileSync(join(where, "engine.db"), "this is no database".repeat(500));
    const store = createSqliteStore({ folder: where });
    await expect(store.open()).rejects.toMatchObject({ code: "store_corrupt", message: expect.stringContaining(join(where, "engine.db")) });
    await store.close();
  });

  test("a second engine on the same folder is told so", async () => {
    const where = folder();
    const first = createSqliteStore({ folder: where });
    await first.load();
    const second = createSqliteStore({ folder: where });
    await expect(second.open()).rejects.toMatchObject({ code: "data_in_use", message: expect.stringContaining("another engine") });
    await second.close();
    await first.close();
  });

  test("an engine killed with -9 leaves no lock behind, and the next start knows that it was not closed", async () => {
    const where = folder();
    const script = join(where, "holder.ts");
    const store = fileURLToPath(new URL("../../src/storage/sqlite.ts", import.meta.url));
    writeFileSync(
      script,
      `import { createSqliteStore } from ${JSON.stringify(store)};
       const store = createSqliteStore({ folder: ${JSON.stringify(where)} });
       await store.commit([{ space: "s", key: "k", value: "v" }]);
       process.stdout.write("up");
       setInterval(() => undefined, 1_000);`,
    );
    const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "close");
    await once(child.stdout, "data");
    const early = createSqliteStore({ folder: where });
    await expect(early.open()).rejects.toMatchObject({ code: "data_in_use" });
    await early.close();
    child.kill("SIGKILL");
    await ended;
    const later = createSqliteStore({ folder: where });
    expect(await later.open()).toEqual({ clean: false, migrated: false });
    expect(await later.get("s", "k")).toBe("v");
    await later.close();
    expect(existsSync(join(where, "engine.db-wal"))).toBe(false);
  });

  test("small values are read at once, on the loop; large ones are promised", async () => {
    const store = createSqliteStore({ folder: folder() });
    await store.commit([
      { space: "s", key: "small", value: "x".repeat(65_536) },
      { space: "s", key: "large", value: "x".repeat(65_537) },
    ]);
    await store.open();
    expect(store.get("s", "small")).toHaveLength(65_536);
    expect(store.get("s", "none")).toBeUndefined();
    const large = store.get("s", "large");
    expect(large).toBeInstanceOf(Promise);
    expect(await large).toHaveLength(65_537);
    await store.close();
  });

  test("a second file of its own name lies beside, and says that a power cut may take its last commits", async () => {
    const where = folder();
    const state = createSqliteStore({ folder: where });
    const traces = createSqliteStore({ folder: where, file: "traces.db", sync: "normal" });
    await traces.commit([{ space: "t", key: "k", value: "trace" }]);
    await state.open();
    expect(await state.get("t", "k")).toBeUndefined();
    expect([state.durability, traces.durability]).toEqual(["full", "relaxed"]);
    expect(existsSync(join(where, "traces.db"))).toBe(true);
    await traces.close();
    await state.close();
  });

  test("rows of another schema version are refused", async () => {
    const where = folder();
    const first = createSqliteStore({ folder: where });
    await first.load();
    await first.close();
    const db = new DatabaseSync(join(where, "engine.db"));
    db.exec("UPDATE meta SET value = '99'");
    db.close();
    const second = createSqliteStore({ folder: where });
    await expect(second.open()).rejects.toMatchObject({ message: expect.stringContaining("schema version 99") });
    await second.close();
  });
});

const traceable = spawnSync("strace", ["-f", "-o", "/dev/null", "true"]).status === 0;
if (!traceable) console.log("skipped: counting syncs needs strace");

describe.skipIf(!traceable)("sqlite store under strace", () => {
  afterEach(cleanup);

  test("A7 a lone acknowledged write costs one sync", () => {
    const where = folder();
    const script = join(where, "writes.ts");
    const store = fileURLToPath(new URL("../../src/storage/sqlite.ts", import.meta.url));
    writeFileSync(
      script,
      `import { createSqliteStore } from ${JSON.stringify(store)};
       import { writeSync } from "node:fs";
       const store = createSqliteStore({ folder: ${JSON.stringify(where)} });
       await store.load();
       await store.commit([{ space: "s", key: "first", value: "1" }]);
       for (let n = 0; n < 10; n += 1) {
         writeSync(1, "BEGIN-" + n + "\\n");
         await store.commit([{ space: "s", key: String(n), value: "v" }]);
         writeSync(1, "ACKED-" + n + "\\n");
       }
       await store.close();`,
    );
    const trace = join(where, "trace.txt");
    execFileSync("strace", ["-f", "-o", trace, "-e", "trace=fsync,fdatasync,write", process.execPath, script], { stdio: "ignore" });
    const lines = execFileSync("grep", ["-E", "fsync|fdatasync|BEGIN-|ACKED-", trace], { encoding: "utf8" }).split("\n");
    for (let n = 0; n < 10; n += 1) {
      const from = lines.findIndex((line) => line.includes(`BEGIN-${n}`));
      const to = lines.findIndex((line) => line.includes(`ACKED-${n}`));
      const syncs = lines.slice(from, to).filter((line) => /f(?:data)?sync\(/.test(line));
      expect(syncs).toHaveLength(1);
    }
  });
});
