// What the official suites ask of state, streams, topics and queues.
import { describe, expect, test, vi } from "vitest";
import { GENERATIONS, type Suite, suite } from "./clients.ts";

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 5_000, interval: 5 });
const item = { stream_name: "suite", group_id: "g", item_id: "i" };

/** Keeps what a function of this id is called with. */
function record({ iii }: Suite, id: string): unknown[] {
  const seen: unknown[] = [];
  iii.registerFunction(id, async (data) => void seen.push(data));
  return seen;
}

describe.each(GENERATIONS)("P7.2 state $name", (generation) => {
  test("set answers old and new; get and delete of what is not there answer nothing", async () => {
    const { call } = await suite(generation);
    const at = { scope: "suite", key: "k" };
    expect(await call("state::set", { ...at, value: { a: 1 } })).toEqual({ old_value: null, new_value: { a: 1 } });
    expect(await call("state::set", { ...at, value: { a: 2 } })).toEqual({ old_value: { a: 1 }, new_value: { a: 2 } });
    expect(await call("state::get", at)).toEqual({ a: 2 });
    expect(await call("state::get", { ...at, key: "none" })).toBeUndefined();
    expect(await call("state::delete", { ...at, key: "none" })).toBeUndefined();
    expect(await call("state::list", { scope: "suite" })).toEqual([{ a: 2 }]);
    expect((await call<{ groups: string[] }>("state::list_groups", {})).groups).toContain("suite");
    expect(await call("state::delete", at)).toEqual({ a: 2 });
  });

  test("update sets, pushes to an array, joins texts and counts", async () => {
    const { call } = await suite(generation);
    const at = { scope: "suite", key: "k" };
    await call("state::set", { ...at, value: { list: ["a"], text: "a", n: 1 } });
    const ops = [
      { type: "set", path: "by", value: "x" },
      { type: "append", path: "list", value: "b" },
      { type: "append", path: "text", value: "b" },
      { type: "increment", path: "n", by: 2 },
    ];
    const answer = await call<{ new_value: unknown; errors?: unknown[] }>("state::update", { ...at, ops });
    expect(answer.errors ?? []).toEqual([]);
    expect(answer.new_value).toEqual({ list: ["a", "b"], text: "ab", n: 3, by: "x" });
  });

  test("a trigger that is bound just before a write on the same connection fires for it", async () => {
    const on = await suite(generation);
    const seen = record(on, "suite::on-state");
    await on.call("state::set", { scope: "suite", key: "k", value: 1 });
    on.iii.registerTrigger({ type: "state", function_id: "suite::on-state", config: { scope: "suite", key: "k" } });
    await on.call("state::set", { scope: "suite", key: "k", value: 2 });
    await eventually(() => expect(seen).toHaveLength(1));
    expect(seen).toMatchObject([{ type: "state", event_type: "state:updated", scope: "suite", key: "k", old_value: 1, new_value: 2 }]);
  });
});

describe.each(GENERATIONS)("P7.2 streams $name", (generation) => {
  test("items are set, read, listed by group, merged by key and by nested path, and deleted", async () => {
    const { call } = await suite(generation);
    expect(await call("stream::set", { ...item, data: { a: 1 } })).toEqual({ old_value: null, new_value: { a: 1 } });
    const ops = [
      { type: "merge", path: "meta", value: { b: 2 } },
      { type: "merge", path: ["deep", "er"], value: { c: 3 } },
    ];
    const answer = await call<{ new_value: unknown; errors?: unknown[] }>("stream::update", { ...item, ops });
    expect(answer.errors ?? []).toEqual([]);
    const whole = { a: 1, meta: { b: 2 }, deep: { er: { c: 3 } } };
    expect(answer.new_value).toEqual(whole);
    expect(await call("stream::get", item)).toEqual(whole);
    expect(await call("stream::list", { stream_name: "suite", group_id: "g" })).toEqual([whole]);
    const groups = await call<string[] | { groups: string[] }>("stream::list_groups", { stream_name: "suite" });
    expect(Array.isArray(groups) ? groups : groups.groups).toEqual(["g"]);
    expect(await call("stream::delete", item)).toEqual({ old_value: whole });
    expect(await call("stream::get", item)).toBeUndefined();
  });

  test("a stream of one's own serves its reads and writes in place of the store", async () => {
    const { iii, call } = await suite(generation);
    const kept = new Map<string, unknown>();
    iii.registerFunction("stream::get(mine)", async ({ item_id }) => kept.get(item_id) ?? null);
    iii.registerFunction("stream::set(mine)", async ({ item_id, data }) => {
      const old_value = kept.get(item_id) ?? null;
      kept.set(item_id, data);
      return { old_value, new_value: data };
    });
    await call("stream::set", { ...item, stream_name: "mine", data: { own: true } });
    expect(kept.get("i")).toEqual({ own: true });
    expect(await call("stream::get", { ...item, stream_name: "mine" })).toEqual({ own: true });
    expect(await call("stream::get", item)).toBeUndefined();
  });
});

describe.each(GENERATIONS)("P7.2 topics and queues $name", (generation) => {
  test("a topic's event comes once, as it was published, and only to its own subscribers", async () => {
    const on = await suite(generation);
    const mine = record(on, "suite::mine");
    const other = record(on, "suite::other");
    on.iii.registerTrigger({ type: "subscribe", function_id: "suite::mine", config: { topic: "mine" } });
    on.iii.registerTrigger({ type: "subscribe", function_id: "suite::other", config: { topic: "other" } });
    await on.settled();
    await on.call("publish", { topic: "mine", data: { n: 1 } });
    await on.call("publish", { topic: "other", data: { n: 2 } });
    await eventually(() => expect([mine, other]).toEqual([[{ n: 1 }], [{ n: 2 }]]));
  });

  test("enqueued calls answer a receipt and come once each, in order where the queue has one", async () => {
    const on = await suite(generation);
    const seen = record(on, "suite::work") as { queue: string; group_id: string; n: number }[];
    for (const queue of ["default", "single", "grouped"]) {
      for (let n = 0; n < 5; n += 1) {
        const payload = { queue, group_id: n % 2 === 0 ? "even" : "odd", n };
        const receipt = await on.iii.trigger({ function_id: "suite::work", payload, action: { type: "enqueue", queue } });
        expect(receipt).toEqual({ messageReceiptId: expect.any(String) });
      }
    }
    await eventually(() => expect(seen).toHaveLength(15));
    const of = (queue: string, group?: string) =>
      seen.filter((one) => one.queue === queue && (group === undefined || one.group_id === group)).map((one) => one.n);
    expect(of("default").toSorted()).toEqual([0, 1, 2, 3, 4]);
    expect([of("single"), of("grouped", "even"), of("grouped", "odd")]).toEqual([
      [0, 1, 2, 3, 4],
      [0, 2, 4],
      [1, 3],
    ]);
    const lost = on.iii.trigger({ function_id: "suite::work", payload: {}, action: { type: "enqueue", queue: "missing" } });
    await expect(lost).rejects.toMatchObject({ code: "enqueue_error" });
  });

  test("a queued function may enqueue the next one", async () => {
    const on = await suite(generation);
    const seen = record(on, "suite::last");
    on.iii.registerFunction("suite::first", ({ n }: { n: number }) =>
      on.iii.trigger({ function_id: "suite::last", payload: { n: n + 1 }, action: { type: "enqueue", queue: "default" } }),
    );
    await on.iii.trigger({ function_id: "suite::first", payload: { n: 1 }, action: { type: "enqueue", queue: "default" } });
    await eventually(() => expect(seen).toEqual([{ n: 2 }]));
  });

  test("a durable topic gives each subscribed function one copy, filtered by its condition", async () => {
    const on = await suite(generation);
    const all = record(on, "suite::all");
    const big = record(on, "suite::big");
    on.iii.registerFunction("suite::is-big", async ({ n }: { n: number }) => n > 1);
    const bind = (function_id: string, more: object) =>
      on.iii.registerTrigger({ type: "durable:subscriber", function_id, config: { topic: "t", ...more } });
    bind("suite::all", { queue_config: { maxRetries: 5, type: "standard" } });
    bind("suite::big", { condition_function_id: "suite::is-big" });
    await on.settled();
    for (const n of [1, 2]) await on.call("iii::durable::publish", { topic: "t", data: { n } });
    await eventually(() => expect([all.length, big]).toEqual([2, [{ n: 2 }]]));
    expect(all).toEqual(expect.arrayContaining([{ n: 1 }, { n: 2 }]));
  });
});
