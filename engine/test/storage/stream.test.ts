import { ManualClock, until } from "@iii/sdk/testing";
import { describe, expect, test } from "vitest";
import {
  type StreamEvent,
  streamDelete,
  streamGet,
  streamList,
  streamListAll,
  streamListGroups,
  streamRead,
  streamSend,
  streamSet,
  streamUpdate,
} from "../../src/builtin/storage/stream/contract.ts";
import { createMemoryStore, testBus } from "../../src/testing/index.ts";
import { gate, probe } from "./helpers.ts";

const group = { stream_name: "chat", group_id: "g1" };
const item = (item_id: string) => ({ ...group, item_id });
const trigger = (config: object = {}) => [{ type: "stream", config: { stream_name: "chat", ...config } }];

describe("streams", () => {
  test("items are set, read, listed, updated and deleted", async () => {
    await using bus = await testBus();
    expect(await bus.call(streamGet, item("a"))).toBeUndefined();
    expect(await bus.call(streamSet, { ...item("a"), data: { n: 1 } })).toEqual({ old_value: null, new_value: { n: 1 } });
    expect(await bus.call(streamUpdate, { ...item("a"), ops: [{ type: "increment", path: "n", by: 2 }] })).toEqual({
      old_value: { n: 1 },
      new_value: { n: 3 },
    });
    await bus.call(streamSet, { ...item("b"), data: 2 });
    await bus.call(streamSet, { ...group, group_id: "g2", item_id: "x", data: 0 });
    expect(await bus.call(streamList, group)).toEqual([{ n: 3 }, 2]);
    expect(await bus.call(streamListGroups, { stream_name: "chat" })).toEqual(["g1", "g2"]);
    expect(await bus.call(streamListAll, {})).toEqual({ stream: [{ id: "chat", groups: ["g1", "g2"] }], count: 1 });
    expect(await bus.call(streamDelete, item("a"))).toEqual({ old_value: { n: 3 } });
    expect(await bus.call(streamDelete, item("a"))).toEqual({ old_value: null });
    await bus.crash();
    expect(await bus.call(streamList, group)).toEqual([2]);
  });

  test("subscribers are told each change in order, deltas between stored items, after they are durable", async () => {
    const clock = new ManualClock();
    const eyes = probe("eyes::see", trigger());
    const others = probe("eyes::other", trigger({ group_id: "g2" }));
    await using bus = await testBus([eyes.worker, others.worker], { clock, store: createMemoryStore({ clock, latency_ms: 10 }) });
    const writes = [
      bus.call(streamSet, { ...item("a"), data: 1 }),
      bus.call(streamSet, { ...item("a/d/1"), data: "del", ephemeral: true }),
      bus.call(streamSend, { ...group, type: "ping", data: 7 }),
      bus.call(streamSet, { ...item("a"), data: 2 }),
      bus.call(streamSet, { ...item("a/d/2"), data: "ta", ephemeral: true }),
    ];
    await bus.settle();
    expect(eyes.seen).toHaveLength(0);
    await clock.advance(100);
    await Promise.all(writes);
    await bus.call(streamDelete, item("none"));
    await bus.settle();
    const events = eyes.inputs<StreamEvent>();
    expect(events.map(({ id, event }) => [id, event.type])).toEqual([
      ["a", "create"],
      ["a/d/1", "create"],
      [null, "event"],
      ["a", "update"],
      ["a/d/2", "create"],
    ]);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(events[0]).toMatchObject({ type: "stream", streamName: "chat", groupId: "g1", timestamp: expect.any(Number) });
    expect(events[2]?.event).toEqual({ type: "event", event: { type: "ping", data: 7 } });
    expect(others.seen).toHaveLength(0);
  });

  test("an ephemeral item costs no write and is gone after a restart; a cursor from before is a gap with a snapshot", async () => {
    await using bus = await testBus();
    await bus.call(streamSet, { ...item("kept"), data: 1 });
    const { commits } = bus.store.stats();
    await bus.call(streamSet, { ...item("d1"), data: "x", ephemeral: true });
    expect(bus.store.stats().commits).toBe(commits);
    const before = await bus.call(streamRead, group);
    expect(before).toMatchObject({ gap: false, seq: 2, items: [{ item_id: "kept" }, { item_id: "d1", ephemeral: true }] });
    await bus.crash();
    const after = await bus.call(streamRead, { ...group, since: before.seq, epoch: before.epoch });
    expect(after).toMatchObject({ gap: true, items: [{ item_id: "kept", data: 1 }] });
    expect(after.epoch).not.toBe(before.epoch);
    const next = await bus.call(streamRead, { ...group, since: after.seq, epoch: after.epoch });
    expect(next).toEqual({ epoch: after.epoch, seq: after.seq, gap: false, items: [] });
  });

  test("an item over the limit is refused and changes nothing, also when it has grown", async () => {
    await using bus = await testBus([], { config: { limits: { max_value_bytes: 1_024 } } });
    const large = { ...item("a"), data: "x".repeat(2_000) };
    await bus.call(streamSet, { ...item("a"), data: ["x".repeat(600)] });
    const { seq } = await bus.call(streamRead, group);
    const ops = [{ type: "append" as const, value: "x".repeat(600) }];
    await expect(bus.call(streamUpdate, { ...item("a"), ops })).rejects.toMatchObject({ code: "VALUE_TOO_LARGE" });
    await expect(bus.call(streamSet, large)).rejects.toMatchObject({ code: "VALUE_TOO_LARGE" });
    await expect(bus.call(streamSet, { ...large, ephemeral: true })).rejects.toMatchObject({ code: "VALUE_TOO_LARGE" });
    await expect(bus.call("state::transact", { events: [large] })).rejects.toMatchObject({ code: "VALUE_TOO_LARGE" });
    expect(await bus.call(streamRead, group)).toMatchObject({ seq, items: [{ data: ["x".repeat(600)] }] });
  });

  test("a group that nobody has written to has a cursor that holds", async () => {
    await using bus = await testBus();
    const before = await bus.call(streamRead, group);
    expect(before).toMatchObject({ seq: 0, gap: false, items: [] });
    await bus.call(streamSet, { ...item("a"), data: 1 });
    const after = await bus.call(streamRead, { ...group, since: before.seq, epoch: before.epoch });
    expect(after).toMatchObject({ epoch: before.epoch, seq: 1, gap: false, items: [{ item_id: "a" }] });
  });

  test("drops of a transaction take the deltas away in the commit that ends the turn", async () => {
    await using bus = await testBus();
    await bus.call(streamSet, { ...item("m1/d/1"), data: "x", ephemeral: true });
    await bus.call("state::transact", {
      events: [{ ...item("m1"), data: "whole" }],
      drops: [{ ...group, prefix: "m1/d/" }],
    });
    expect((await bus.call(streamRead, { ...group, since: 0 })).items.map(({ item_id }) => item_id)).toEqual(["m1"]);
    expect(await bus.call(streamList, group)).toEqual(["whole"]);
  });

  test("a subscriber that does not answer is not waited for, up to a bound", async () => {
    const eyes = probe("eyes::slow", trigger());
    const answered = gate();
    eyes.answer = () => answered.promise;
    await using bus = await testBus([eyes.worker]);
    for (let n = 0; n < 80; n += 1) await bus.call(streamSend, { ...group, type: "n", data: n });
    await bus.settle();
    expect(eyes.seen).toHaveLength(64);
    answered.open();
    await until(() => eyes.seen.length === 80);
    expect(eyes.inputs<StreamEvent>().map(({ seq }) => seq)).toEqual(Array.from({ length: 80 }, (_, n) => n + 1));
  });

  test("a custom stream keeps its items itself and still tells subscribers", async () => {
    const eyes = probe("eyes::custom", trigger());
    await using bus = await testBus([eyes.worker]);
    const iii = await bus.connect("owner");
    const kept = new Map<string, unknown>();
    type Input = { item_id: string; data?: unknown };
    iii.registerFunction("stream::set(chat)", (input) => {
      const { item_id, data } = input as Input;
      const old_value = kept.get(item_id);
      kept.set(item_id, data);
      return { old_value, new_value: { mine: data } };
    });
    iii.registerFunction("stream::get(chat)", (input) => kept.get((input as Input).item_id));
    await bus.settle();
    expect(await bus.call(streamSet, { ...item("a"), data: 1 })).toEqual({ old_value: null, new_value: { mine: 1 } });
    expect(await bus.call(streamGet, item("a"))).toBe(1);
    await until(() => eyes.seen.length === 1);
    expect(eyes.inputs<StreamEvent>()[0]?.event).toEqual({ type: "create", data: { mine: 1 } });
    expect(await bus.call(streamList, group)).toEqual([]);
  });
});
