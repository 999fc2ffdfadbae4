import pg from "pg";
import { afterAll, describe, expect, test } from "vitest";
import { createPostgresStore } from "../../src/storage/postgres.ts";
import { startPostgres } from "./postgres.ts";
import { storeCases } from "./store.case.ts";

const server = await startPostgres().catch((thrown: Error) => thrown);

describe.skipIf(server instanceof Error)(`postgres${server instanceof Error ? ` (skipped: ${server.message})` : ""}`, () => {
  if (server instanceof Error) return;
  afterAll(() => server.stop());
  let current = "";
  storeCases("postgres", {
    async open() {
      current = await server.database();
      return createPostgresStore({ url: current });
    },
    async reopen(store) {
      await store.close();
      return createPostgresStore({ url: current });
    },
    async failing() {
      current = await server.database();
      const first = createPostgresStore({ url: current });
      await first.load();
      await first.close();
      const client = new pg.Client(current);
      await client.connect();
      await client.query("ALTER TABLE iii_rows ADD CHECK (octet_length(value) > 1000000)");
      await client.end();
      return createPostgresStore({ url: current });
    },
    cleanup() {},
  });

  /** Does something to a database behind the store's back. */
  const behind = async (url: string, text: string): Promise<pg.QueryResult> => {
    const client = new pg.Client(url);
    await client.connect();
    try {
      return await client.query(text);
    } finally {
      await client.end();
    }
  };

  test("a second engine on the same database is told so, and may write once the first has ended", async () => {
    const url = await server.database();
    const first = createPostgresStore({ url });
    await first.commit([{ space: "s", key: "k", value: "1" }]);
    const second = createPostgresStore({ url });
    await expect(second.load()).rejects.toMatchObject({ code: "data_in_use", message: expect.stringContaining("another engine") });
    await second.close();
    await first.close();
    const third = createPostgresStore({ url });
    expect(await third.get("s", "k")).toBe("1");
    await third.close();
  });

  test("a store whose writing session is cut off says so at once, and writes nothing more", async () => {
    const url = await server.database();
    const lost = Promise.withResolvers<unknown>();
    const store = createPostgresStore({ url, lost: lost.resolve });
    await store.commit([{ space: "s", key: "k", value: "1" }]);
    await behind(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    );
    expect(await lost.promise).toMatchObject({ code: "store_unavailable" });
    await expect(store.commit([{ space: "s", key: "k", value: "2" }])).rejects.toMatchObject({ code: "store_unavailable" });
    await store.close();
    const next = createPostgresStore({ url });
    expect(await next.get("s", "k")).toBe("1");
    await next.close();
  });

  test("names longer than an index entry are told apart and sorted", async () => {
    const store = createPostgresStore({ url: await server.database() });
    const long = (end: string) => `${"é".repeat(1_020)}${end}`;
    const space = "s".repeat(1_500);
    await store.commit(["c", "a", "b"].map((end) => ({ space, key: long(end), value: end })));
    await store.commit([
      { space, key: long("b"), value: "new" },
      { space, key: long("c"), value: null },
    ]);
    expect(await store.get(space, long("b"))).toBe("new");
    expect((await store.range(space, { limit: 9 })).rows.map(({ value }) => value)).toEqual(["a", "new"]);
    expect((await store.range(space, { limit: 9, after: long("a") })).rows.map(({ value }) => value)).toEqual(["new"]);
    expect((await store.range(`${space}x`, { limit: 9 })).rows).toEqual([]);
    await store.close();
  });

  test("a page ends at about 1 MB of values", async () => {
    const store = createPostgresStore({ url: await server.database() });
    await store.commit(Array.from({ length: 30 }, (_, n) => ({ space: "s", key: String(n + 10), value: "x".repeat(100_000) })));
    const page = await store.range("s", { limit: 100 });
    expect(page.rows.length).toBe(11);
    expect(page.next).toBe("20");
    expect((await store.range("s", { limit: 100, after: page.next })).rows.map(({ key }) => key)[0]).toBe("21");
    await store.close();
  });

  test("a value that was changed behind the store is never served: its row is named", async () => {
    const url = await server.database();
    const store = createPostgresStore({ url });
    await store.commit([{ space: "s", key: "k", value: "true" }]);
    await behind(url, "UPDATE iii_rows SET value = 'null'");
    await expect(store.get("s", "k")).rejects.toMatchObject({ code: "store_corrupt", message: expect.stringContaining("s/k") });
    expect(await store.range("s", { limit: 9 })).toEqual({ rows: [], damaged: ["k"] });
    expect(store.health()).toMatchObject({ damaged: [expect.stringContaining("s k")], damaged_rows: 1 });
    await store.close();
  });

  test("the password of an address is not in an error's text", async () => {
    const store = createPostgresStore({ url: "postgres://someone:hidden@127.0.0.1:1/none" });
    const error: unknown = await store.load().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "store_unavailable", message: expect.stringContaining("127.0.0.1:1/none") });
    expect(String(error)).not.toContain("hidden");
    await store.close();
  });
});
