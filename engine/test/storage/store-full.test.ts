// A full disk, on a small file system in memory. Needs root; says so and skips elsewhere.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/ports/store.ts";
import { createSqliteStore } from "../../src/storage/sqlite.ts";

const MB = 1_048_576;
const root = mkdtempSync(join(tmpdir(), "full-"));
const usable = spawnSync("mount", ["-t", "tmpfs", "-o", "size=128m", "tmpfs", root]).status === 0;
if (!usable) process.stderr.write("skipped: a full disk (needs root and tmpfs)\n");
const ballast = join(root, "ballast");
const folder = join(root, "data");
const free = (): number => {
  const { bavail, bsize } = statfsSync(root);
  return bavail * bsize;
};
/** Fills the disk but for so many bytes. */
const leave = (bytes: number): void => writeFileSync(ballast, Buffer.alloc(free() - bytes));
const rows = (space: string, count: number, bytes: number) =>
  Array.from({ length: count }, (_, n) => ({ space, key: String(n), value: "x".repeat(bytes) }));
const put = (key: string, value = "v") => [{ space: "s", key, value }];

let store: Store;
async function open(): Promise<Store> {
  store = createSqliteStore({ folder });
  await store.open();
  return store;
}
async function until(done: () => boolean): Promise<void> {
  for (let n = 0; n < 200 && !done(); n += 1) await new Promise((next) => setTimeout(next, 50));
  expect(done()).toBe(true);
}
const reserve = () => statSync(join(folder, "reserve"), { throwIfNoEntry: false });
const reserved = (): boolean => reserve()?.size === 16 * MB;

afterEach(async () => {
  await store.close();
  rmSync(ballast, { force: true });
  rmSync(folder, { recursive: true, force: true });
});
afterAll(() => {
  if (usable) spawnSync("umount", [root]);
  rmSync(root, { recursive: true, force: true });
});

describe.skipIf(!usable)("K10.2 a full disk", () => {
  test("is met before it is reached: additions are refused by name and fix, what ends things is taken, and it recovers by itself", async () => {
    await open();
    await store.commit([...put("old"), ...put("older")]);
    await until(reserved);
    expect((reserve()?.blocks ?? 0) * 512).toBeGreaterThanOrEqual(16 * MB);
    leave(31 * MB);
    const refused = await store.commit(put("new")).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "STORE_FULL", retryable: true, message: expect.stringContaining(folder) });
    expect(store.health().mode).toBe("full");
    expect(reserve()).toBeUndefined();
    await expect(store.commit(put("new"))).rejects.toMatchObject({ code: "STORE_FULL" });
    await store.commit(put("denial"), { reserve: true });
    await store.commit([
      { space: "s", key: "old", value: null },
      { space: "meta", key: "rev", value: "7" },
    ]);
    expect(await store.get("s", "old")).toBeUndefined();
    expect(await store.get("s", "older")).toBe("v");
    expect((await store.range("s", { limit: 9 })).rows.map(({ key }) => key)).toEqual(["denial", "older"]);
    rmSync(ballast);
    await until(() => store.health().mode === "ok");
    await store.commit(put("after"));
    await until(reserved);
  });

  test("a batch that finds no space half-way leaves nothing behind and takes along what was planned after it; what stood before it is kept", async () => {
    await open();
    await until(reserved);
    leave(40 * MB);
    const outcomes = await Promise.allSettled([
      store.commit(put("first"), { reserve: true }),
      store.commit(put("before"), { reserve: true }),
      store.commit(rows("big", 100, MB)),
      store.commit(put("behind"), { reserve: true }),
    ]);
    expect(outcomes.map((outcome) => (outcome.status === "fulfilled" ? "kept" : outcome.reason.code))).toEqual([
      "kept",
      "kept",
      "STORE_FULL",
      "STORE_FULL",
    ]);
    expect(await store.get("s", "behind")).toBeUndefined();
    expect((await store.range("big", { limit: 9 })).rows).toEqual([]);
    await store.commit(put("later"), { reserve: true });
    expect(await store.get("s", "later")).toBe("v");
  });

  test("a store opens on a full disk, and what was acknowledged there is in it", async () => {
    await open();
    await until(reserved);
    await store.commit(put("kept"));
    leave(20 * MB);
    await store.commit(put("end"), { reserve: true });
    writeFileSync(join(root, "more"), Buffer.alloc(free() - MB));
    await store.close();
    await open();
    expect([await store.get("s", "kept"), await store.get("s", "end")]).toEqual(["v", "v"]);
    await expect(store.commit(put("new"))).rejects.toMatchObject({ code: "STORE_FULL" });
    await store.commit(put("denial"), { reserve: true });
    rmSync(join(root, "more"));
  });
});
