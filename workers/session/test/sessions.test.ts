// What a transcript keeps: order by parents, one effect per entry id, nothing lost when appends race.
import type { AgentMessage } from "@iii/contracts";
import { systemRandom } from "@iii/sdk";
import { ManualClock } from "@iii/sdk/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SessionEntry, SessionMeta } from "../src/contract.ts";
import { Sessions } from "../src/sessions.ts";
import type { SessionStore } from "../src/store.ts";
import { pathTo, summarise } from "../src/tree.ts";

const say = (text: string): AgentMessage => ({ role: "user", content: [{ type: "text", text }], timestamp: 1 });

/** The store's rules (checked, all or nothing, one revision counter) over maps; every call yields, so that races happen. */
function memoryStore(): SessionStore & { writes: number; calls: number } {
  const metas = new Map<string, { value: SessionMeta; rev: number }>();
  const entries = new Map<string, SessionEntry>();
  let rev = 0;
  return {
    writes: 0,
    calls: 0,
    async meta(sid) {
      this.calls += 1;
      await Promise.resolve();
      return metas.get(sid) ?? { value: undefined, rev: 0 };
    },
    async metas() {
      return { rows: [...metas].map(([key, row]) => ({ key, ...row })), unreadable: [] };
    },
    async entry(sid, id) {
      this.calls += 1;
      await Promise.resolve();
      const value = entries.get(`${sid}/${id}`);
      return { value, rev: value === undefined ? 0 : 1 };
    },
    async entries(sid) {
      const mine = [...entries].filter(([key]) => key.startsWith(`${sid}/`));
      return { rows: mine.map(([, value]) => ({ key: value.id, value, rev: 1 })), unreadable: [] };
    },
    async write(meta, expected, added) {
      this.calls += 1;
      await Promise.resolve();
      const sid = meta.session_id;
      const taken = added.find(({ id }) => entries.has(`${sid}/${id}`));
      if (taken !== undefined) return { ok: false, conflict: { kind: "entry", entry_id: taken.id } };
      if ((metas.get(sid)?.rev ?? 0) !== expected) return { ok: false, conflict: { kind: "meta" } };
      rev += 1;
      this.writes += 1;
      metas.set(sid, { value: structuredClone(meta), rev });
      for (const entry of added) entries.set(`${sid}/${entry.id}`, structuredClone(entry));
      return { ok: true, rev };
    },
  };
}

function setup(store = memoryStore()) {
  const clock = new ManualClock(1_000);
  const sessions = new Sessions({ store, clock, random: systemRandom });
  const ids = async (leaf?: string) => (await sessions.messages("s", leaf)).messages.map(({ entry_id }) => entry_id);
  const append = (entry_id: string, parent_id?: string, text = entry_id) =>
    sessions.append({ session_id: "s", parent_id, entry_ids: [entry_id], messages: [say(text)] });
  return { store, clock, sessions, ids, append };
}

describe("appending", () => {
  test("goes below the active leaf, in order, whatever the clock says", async () => {
    const { sessions, ids, append } = setup();
    await sessions.ensure("s", {});
    for (const id of ["b", "a", "c"]) await append(id);
    expect(await ids()).toEqual(["b", "a", "c"]);
  });
  test("with `create`, a new session and its first message are one write, and one that is there is extended", async () => {
    const { sessions, ids, store } = setup();
    const add = (by: Sessions, id: string) => by.append({ session_id: "s", entry_ids: [id], messages: [say(id)], create: true });
    await add(sessions, "a");
    expect([store.calls, store.writes]).toEqual([1, 1]);
    const restarted = setup(store).sessions;
    await Promise.all([add(restarted, "b"), add(sessions, "c"), add(restarted, "a")]);
    expect((await ids()).toSorted()).toEqual(["a", "b", "c"]);
    expect((await store.meta("s"))?.value).toMatchObject({ branch_count: 0, entry_count: 3 });
  });
  test("two that create the same session at once both have their message in it", async () => {
    const { sessions, ids, store } = setup();
    const other = setup(store).sessions;
    await Promise.all(
      [sessions, other].map((by, n) => by.append({ session_id: "s", entry_ids: [`e${n}`], messages: [say("x")], create: true })),
    );
    expect((await ids()).toSorted()).toEqual(["e0", "e1"]);
  });
  test("the same id twice has one effect and the same answer", async () => {
    const { sessions, ids, append, store } = setup();
    await sessions.ensure("s", {});
    expect(await append("a")).toEqual(["a"]);
    await append("b");
    const writes = store.writes;
    expect(await append("a")).toEqual(["a"]);
    expect(store.writes).toBe(writes);
    expect(await ids()).toEqual(["a", "b"]);
  });
  test("the same id with another message is refused", async () => {
    const { sessions, append } = setup();
    await sessions.ensure("s", {});
    await append("a");
    await expect(append("a", undefined, "other")).rejects.toMatchObject({ code: "idempotency_conflict" });
  });
  test("a batch that was half there is completed once", async () => {
    const { sessions, ids, append } = setup();
    await sessions.ensure("s", {});
    await append("a");
    const batch = { session_id: "s", entry_ids: ["a", "b", "c"], messages: [say("a"), say("b"), say("c")] };
    await sessions.append(batch);
    expect(await sessions.append(batch)).toEqual(["a", "b", "c"]);
    expect(await ids()).toEqual(["a", "b", "c"]);
  });
  test("below an older entry makes a branch, which becomes the active path", async () => {
    const { sessions, ids, append, store } = setup();
    await sessions.ensure("s", {});
    for (const id of ["a", "b"]) await append(id);
    await append("x", "a");
    expect(await ids()).toEqual(["a", "x"]);
    expect(await ids("b")).toEqual(["a", "b"]);
    expect((await store.meta("s"))?.value).toMatchObject({ branch_count: 1, entry_count: 3, leaf_id: "x" });
  });
  test("below an unknown entry, or to an unknown session, is refused", async () => {
    const { sessions, append } = setup();
    await expect(append("a")).rejects.toMatchObject({ code: "session_not_found" });
    await sessions.ensure("s", {});
    await expect(append("a", "nope")).rejects.toMatchObject({ code: "entry_not_found" });
  });
  test("entry ids must name each message once", async () => {
    const { sessions } = setup();
    await sessions.ensure("s", {});
    const two = [say("x"), say("y")];
    await expect(sessions.append({ session_id: "s", entry_ids: ["a"], messages: two })).rejects.toMatchObject({ code: "invalid_payload" });
    await expect(sessions.append({ session_id: "s", entry_ids: ["a", "a"], messages: two })).rejects.toMatchObject({
      code: "invalid_payload",
    });
  });
  test("in a run of appends each costs one round trip", async () => {
    const { sessions, append, store } = setup();
    await sessions.ensure("s", {});
    const before = store.calls;
    for (let i = 0; i < 20; i += 1) await append(`e${i}`);
    expect(store.calls - before).toBe(20);
  });
});

test("property: appends from two processes at once, each sent twice, all arrive once on one path", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: 1 }), { minLength: 1, maxLength: 20 }), async (owners) => {
      const store = memoryStore();
      const both = [setup(store), setup(store)];
      await both[0]?.sessions.ensure("s", {});
      await Promise.all(owners.flatMap((owner, i) => [both[owner]?.append(`e${i}`), both[1 - owner]?.append(`e${i}`)]));
      const path = (await both[0]?.ids()) ?? [];
      expect([...path].sort()).toEqual(owners.map((_, i) => `e${i}`).sort());
    }),
    { numRuns: 50 },
  );
});

describe("sessions", () => {
  test("ensure keeps what is there", async () => {
    const { sessions, append, ids } = setup();
    await sessions.ensure("s", { display_name: "one" });
    await append("a");
    await setup().sessions.ensure("s", {});
    await sessions.ensure("s", { display_name: "two" });
    expect(await ids()).toEqual(["a"]);
    expect((await sessions.list({})).sessions[0]).toMatchObject({ display_name: "one", entry_count: 1 });
  });
  test("the list is newest first, pages, and shows the last text", async () => {
    const { sessions, clock } = setup();
    for (const id of ["s1", "s2", "s3"]) {
      await sessions.ensure(id, {});
      await clock.advance(10);
    }
    await sessions.append({ session_id: "s1", messages: [say("hello\n  world")] });
    const { sessions: rows, total } = await sessions.list({ limit: 2 });
    expect(rows.map((row) => row.session_id)).toEqual(["s1", "s3"]);
    expect(total).toBe(3);
    expect(rows[0]?.last_message_summary).toBe("hello world");
    expect((await sessions.list({ order: "asc", offset: 1 })).sessions.map((row) => row.session_id)).toEqual(["s3", "s1"]);
  });
  test("a session that nobody named is called by the first thing that was said in it; a name that was given stays", async () => {
    const { sessions } = setup();
    await sessions.ensure("s", {});
    await sessions.append({ session_id: "s", messages: [say("first words")] });
    await sessions.append({ session_id: "s", messages: [say("second words")] });
    await sessions.ensure("named", { display_name: "mine" });
    await sessions.append({ session_id: "named", messages: [say("first words")] });
    const { sessions: rows } = await sessions.list({});
    const names = new Map(rows.map((row) => [row.session_id, row.display_name]));
    expect(names).toEqual(
      new Map([
        ["s", "first words"],
        ["named", "mine"],
      ]),
    );
  });
  test("U9 neither an empty session nor an unknown one has messages, and an unknown branch is an error", async () => {
    const { sessions } = setup();
    await sessions.ensure("s", {});
    expect(await sessions.messages("s", undefined)).toEqual({ messages: [] });
    expect(await sessions.messages("t", undefined)).toEqual({ messages: [] });
    await expect(sessions.messages("t", "nope")).rejects.toMatchObject({ code: "entry_not_found" });
    await expect(sessions.messages("s", "nope")).rejects.toMatchObject({ code: "entry_not_found" });
  });
});

test("parents in a circle are an error, not a hang", () => {
  const entry = (id: string, parent_id: string): SessionEntry => ({
    type: "message",
    id,
    parent_id,
    seq: 0,
    timestamp: 0,
    message: say(id),
  });
  const rows = [entry("a", "b"), entry("b", "a")].map((value) => ({ key: value.id, value, rev: 1 }));
  expect(() => pathTo({ rows, unreadable: [] }, "a")).toThrow(/circle/);
});
test("a summary is cut by characters, not code units", () => {
  expect(summarise(say("😀".repeat(100)))).toBe("😀".repeat(80));
});
