// One suite that every store adapter passes.
import { BusError } from "@iii/sdk";
import { afterEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/ports/store.ts";

export interface StoreCase {
  open(): Promise<Store> | Store;
  /** The same rows, opened as a restarted engine does. */
  reopen(store: Store): Promise<Store> | Store;
  /** A store whose next commit fails. */
  failing(): Promise<Store> | Store;
  cleanup(): Promise<void> | void;
}

const row = (space: string, key: string, value: string) => ({ space, key, value });

export function storeCases(name: string, adapter: StoreCase): void {
  describe(`store: ${name}`, () => {
    afterEach(() => adapter.cleanup());

    test("what was acknowledged is there after a restart, in order of space and key", async () => {
      const store = await adapter.open();
      await store.load();
      await store.commit([row("b", "2", "two"), row("b", "1", "one"), row("a", "9", "é€𝄞\u0000x")]);
      await store.commit([row("b", "2", "new"), { space: "b", key: "1", value: null }]);
      const again = await adapter.reopen(store);
      expect(await again.load()).toEqual([row("a", "9", "é€𝄞\u0000x"), row("b", "2", "new")]);
      await again.close();
    });

    test("batches that arrive together are acknowledged in the order of their calls", async () => {
      const store = await adapter.open();
      const done: number[] = [];
      await Promise.all(Array.from({ length: 50 }, (_, n) => store.commit([row("s", "k", String(n))]).then(() => done.push(n))));
      expect(done).toEqual(Array.from({ length: 50 }, (_, n) => n));
      expect(await store.load()).toEqual([row("s", "k", "49")]);
      await store.close();
    });

    test("a batch of any length is one commit", async () => {
      const store = await adapter.open();
      await store.load();
      await store.commit(Array.from({ length: 200_000 }, (_, n) => row("s", String(n % 100), "v")));
      expect(store.stats()).toEqual({ commits: 1, writes: 200_000 });
      await store.close();
    });

    test("one row is read by its key, and rows in order of the bytes of their keys, page by page", async () => {
      const store = await adapter.open();
      const keys = ["a/1", "a/2", "b", "\uff5e", "\u{1d11e}", "\u{1d11e}a", "a/10"];
      await store.commit([...keys.map((key) => row("s", key, `v${key}`)), row("t", "b", "other")]);
      expect(await store.get("s", "b")).toBe("vb");
      expect(await store.get("s", "c")).toBeUndefined();
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await store.range("s", { after, limit: 2 });
        seen.push(...page.rows.map(({ key }) => key));
        after = page.next;
      } while (after !== undefined);
      expect(seen).toEqual(["a/1", "a/10", "a/2", "b", "\uff5e", "\u{1d11e}", "\u{1d11e}a"]);
      expect((await store.range("s", { prefix: "a/", limit: 9 })).rows.map(({ key }) => key)).toEqual(["a/1", "a/10", "a/2"]);
      expect((await store.range("s", { prefix: "a/", after: "a/10", limit: 9 })).rows.map(({ key }) => key)).toEqual(["a/2"]);
      expect((await store.range("s", { prefix: "b", after: "a/1", limit: 9 })).rows.map(({ key }) => key)).toEqual(["b"]);
      expect((await store.range("s", { prefix: "c", limit: 9 })).rows).toEqual([]);
      await store.commit([{ space: "s", key: "a/10", value: null }, row("s", "a/0", "new"), row("s", "b", "newer")]);
      expect((await store.range("s", { limit: 4 })).rows).toEqual([
        row("s", "a/0", "new"),
        row("s", "a/1", "va/1"),
        row("s", "a/2", "va/2"),
        row("s", "b", "newer"),
      ]);
      await store.close();
    });

    test("a page ends at about 1 MB of values, with one row at least, and the next one goes on behind it", async () => {
      const store = await adapter.open();
      const big = "x".repeat(700_000);
      await store.commit(["a", "b", "c", "d"].map((key) => row("s", key, big)));
      const pages: string[][] = [];
      let after: string | undefined;
      do {
        const page = await store.range("s", { after, limit: 100 });
        pages.push(page.rows.map(({ key }) => key));
        after = page.next;
      } while (after !== undefined);
      expect(pages).toEqual([
        ["a", "b"],
        ["c", "d"],
      ]);
      expect(await store.get("s", "d")).toBe(big);
      await store.close();
    });

    test("a read sees the whole of a batch or nothing of it, and what was acknowledged at once", async () => {
      const store = await adapter.open();
      await store.open();
      const pair = async () => {
        // Read backwards: the first row is read last, so it is never older than the last one.
        const second = Number((await store.get("s", "b")) ?? 0);
        return { first: Number((await store.get("s", "a")) ?? 0), second };
      };
      let running = true;
      const writing = (async () => {
        for (let n = 1; n <= 60; n += 1) {
          await store.commit([row("s", "a", String(n)), row("s", "b", String(n))]);
          expect(await store.get("s", "b")).toBe(String(n));
        }
        running = false;
      })();
      while (running) {
        const { first, second } = await pair();
        expect(first).toBeGreaterThanOrEqual(second);
        const { rows } = await store.range("s", { limit: 2 });
        expect(new Set(rows.map(({ value }) => value)).size).toBeLessThan(2);
        await new Promise((done) => setImmediate(done));
      }
      await writing;
      await store.close();
    });

    test("a store that was closed opens clean, and every call of open says so", async () => {
      const store = await adapter.open();
      await store.commit([row("s", "k", "v")]);
      const again = await adapter.reopen(store);
      expect(await again.open()).toEqual({ clean: true, migrated: false });
      expect(await again.open()).toEqual({ clean: true, migrated: false });
      expect(again.health()).toMatchObject({ mode: "ok", damaged: [], damaged_rows: 0 });
      await again.close();
    });

    test("a batch with nothing in it is acknowledged", async () => {
      const store = await adapter.open();
      await store.commit([]);
      expect(await store.load()).toEqual([]);
      await store.close();
    });

    test("after a failed commit nothing more is accepted, also what was waiting", async () => {
      const store = await adapter.failing();
      const outcomes = await Promise.allSettled([store.commit([row("s", "a", "1")]), store.commit([row("s", "b", "2")])]);
      expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
      await expect(store.commit([row("s", "c", "3")])).rejects.toBeInstanceOf(BusError);
      await store.close();
    });
  });
}
