// What a power cut leaves: the store writes into a file system inside an image file; a copy of the image, taken at a moment of its
// own, holds only what had been synced by then. Needs root and loop devices; says so and skips elsewhere.
import { spawnSync } from "node:child_process";
import { constants, copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { createSqliteStore } from "../../src/storage/sqlite.ts";

const SEEDS = 8;
const root = mkdtempSync(join(tmpdir(), "power-"));
const mounted: string[] = [];

function run(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

function image(name: string): string {
  const file = join(root, name);
  writeFileSync(file, "");
  // Smaller, and the store would take the disk for full.
  truncateSync(file, 112 * 1024 * 1024);
  return run("mkfs.ext4", "-q", file) ? file : "";
}

function mount(file: string): string {
  const folder = `${file}.mounted`;
  mkdirSync(folder);
  if (!run("mount", "-o", "loop", file, folder)) return "";
  mounted.push(folder);
  return folder;
}

function unmount(folder: string): void {
  run("umount", folder);
  mounted.splice(mounted.indexOf(folder), 1);
}

/** The keys that a copy of the image, mounted like a disk after the cut, still has. */
function keysAfterCut(snapshot: string): Set<string> {
  const folder = mount(snapshot);
  const db = new DatabaseSync(join(folder, "engine.db"));
  try {
    const rows = db.prepare("SELECT key FROM rows WHERE space = 'cut'").all() as { key: string }[];
    expect(db.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    return new Set(rows.map((row) => row.key));
  } finally {
    db.close();
    unmount(folder);
  }
}

const usable = (() => {
  const probe = image("probe");
  const folder = probe === "" ? "" : mount(probe);
  if (folder !== "") unmount(folder);
  return folder !== "";
})();
if (!usable) process.stderr.write("skipped: power loss (needs root, mkfs.ext4 and loop devices)\n");

afterAll(() => {
  for (const folder of [...mounted]) unmount(folder);
  rmSync(root, { recursive: true, force: true });
});

describe.skipIf(!usable)("A8 a power cut at a moment of its own", () => {
  test.each(Array.from({ length: SEEDS }, (_, seed) => seed))("seed %i loses no acknowledged write", async (seed) => {
    const disk = image(`disk-${seed}`);
    const folder = mount(disk);
    const store = createSqliteStore({ folder });
    await store.load();
    const acknowledged: string[] = [];
    let on = true;
    const writer = async (lane: number): Promise<void> => {
      for (let n = 0; on && n < 5_000; n += 1) {
        const key = `${lane}-${n}`;
        await store.commit([{ space: "cut", key, value: JSON.stringify("x".repeat(200 + ((n * 37) % 400))) }]);
        acknowledged.push(key);
      }
    };
    const writers = [0, 1, 2].map(writer);
    const until = 40 + seed * 35;
    while (acknowledged.length < until) await new Promise<void>((done) => setImmediate(done));
    const promised = [...acknowledged];
    const snapshot = join(root, `cut-${seed}`);
    copyFileSync(disk, snapshot, constants.COPYFILE_FICLONE);
    on = false;
    await Promise.all(writers);
    await store.close();
    unmount(folder);
    const there = keysAfterCut(snapshot);
    expect(promised.length).toBeGreaterThanOrEqual(until);
    expect(promised.filter((key) => !there.has(key))).toEqual([]);
  });

  test("and without the sync the same cut does lose writes, so the test can fail", () => {
    const disk = image("disk-off");
    const folder = mount(disk);
    const db = new DatabaseSync(join(folder, "engine.db"));
    db.exec("PRAGMA journal_mode=WAL");
    db.exec("PRAGMA synchronous=OFF");
    db.exec("CREATE TABLE rows(space TEXT, key TEXT, value TEXT, PRIMARY KEY(space, key)) STRICT");
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    run("sync", "-f", folder);
    const insert = db.prepare("INSERT INTO rows VALUES ('cut', ?, ?)");
    for (let n = 0; n < 200; n += 1) insert.run(String(n), "x".repeat(300));
    const snapshot = join(root, "cut-off");
    copyFileSync(disk, snapshot);
    db.close();
    unmount(folder);
    expect(keysAfterCut(snapshot).size).toBeLessThan(200);
  });
});
