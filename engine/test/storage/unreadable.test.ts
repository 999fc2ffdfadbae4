// Rows of the store that hold something else than was written there: named, left out of lists, never taken for a value, and no end of a start.
import {
  durablePublish,
  queueDiscardMessage,
  queueDlqMessages,
  queueRedrive,
  queueTopicStats,
  stateDelete,
  stateGet,
  stateGetWithRev,
  stateList,
  stateSet,
  stateTransact,
  stateUpdate,
  streamList,
  streamSet,
} from "@iii/engine/contract";
import { createMemoryStore, testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { probe } from "./helpers.ts";

const GROUP = { stream_name: "chat", group_id: "g1" };
const TEXTS = ['{"r":1,', "null", "[]", '"x"', "{}", '{"r":"1","c":1,"v":2}', '{"r":1,"c":1}', '{"s":1.5,"c":1,"v":2}', ""];

test.each(TEXTS)("K2.7 a state row %j costs its own key only", async (value) => {
  const store = createMemoryStore();
  const rows = [
    { space: "state:s", key: "bad", value },
    { space: "state:s", key: "good", value: '{"r":7,"c":7,"v":{"n":1}}' },
  ];
  await store.commit(rows);
  await using bus = await testBus([], { store });
  const bad = { scope: "s", key: "bad" };
  expect(await bus.call(stateList, { scope: "s" })).toEqual([{ n: 1 }]);
  for (const read of [stateGet, stateGetWithRev]) {
    await expect(bus.call(read.id, bad)).rejects.toMatchObject({ code: "store_corrupt", message: expect.stringContaining("state:s/bad") });
  }
  // Not the same as absent: neither a check for "is not there" nor an update passes.
  await expect(bus.call(stateTransact, { checks: [{ ...bad, rev: 0 }] })).rejects.toMatchObject({ code: "store_corrupt" });
  await expect(bus.call(stateUpdate, { ...bad, ops: [] })).rejects.toMatchObject({ code: "store_corrupt" });
  // A plain write or delete makes it good again, also on disk; numbers go on after those that were read.
  await bus.call(stateSet, { ...bad, value: 2 });
  expect((await bus.call(stateGetWithRev, bad)).rev).toBeGreaterThan(7);
  await bus.crash();
  expect(await bus.call(stateGet, bad)).toBe(2);
});

test("K2.7 an unreadable state row can be deleted", async () => {
  const store = createMemoryStore();
  await store.commit([{ space: "state:s", key: "bad", value: "?" }]);
  await using bus = await testBus([], { store });
  await bus.call(stateDelete, { scope: "s", key: "bad" });
  expect(await bus.call(stateGet, { scope: "s", key: "bad" })).toBeUndefined();
  await bus.crash();
  expect(await bus.call(stateGet, { scope: "s", key: "bad" })).toBeUndefined();
});

test.each(['stream:["chat","g1"]', "stream:[]", 'stream:{"a":1}', "stream:x", "stream:"])(
  "K2.7 rows of the space %s cost themselves only",
  async (space) => {
    const store = createMemoryStore();
    await store.commit([
      ...TEXTS.map((value, n) => ({ space, key: `bad${n}`, value })),
      { space: "stream:[1,2]", key: "k", value: '{"s":1,"c":1,"v":1}' },
    ]);
    await using bus = await testBus([], { store });
    await bus.call(streamSet, { ...GROUP, item_id: "good", data: 1 });
    expect(await bus.call(streamList, GROUP)).toEqual([1]);
  },
);

test.each([...TEXTS, '{"id":"m","key":"0000000000000003","function_id":"probe::fn","data":"{","receipt":"r"}'])(
  "K2.8 a queue row %j is a dead letter with a reason; the messages behind it are delivered",
  async (value) => {
    const store = createMemoryStore();
    await store.commit([{ space: "queue:default", key: "0000000000000003", value }]);
    const seen = probe("probe::fn");
    await using bus = await testBus([seen.worker], { store });
    const enqueue = [{ queue: "default", function_id: "probe::fn", data: { n: 1 } }];
    await bus.call(stateTransact, { enqueue });
    await bus.settle();
    expect(seen.inputs()).toEqual([{ n: 1 }]);
    const dead = await bus.call(queueDlqMessages, { queue: "default" });
    expect(dead).toMatchObject([{ payload: value, error: expect.stringContaining("cannot be read") }]);
    // There is nothing to deliver, before and after a restart; it can be dropped.
    expect(await bus.call(queueRedrive, { queue: "default" })).toMatchObject({ redriven: 0 });
    await bus.crash();
    expect(await bus.call(queueDlqMessages, { queue: "default" })).toMatchObject([{ payload: value }]);
    expect(await bus.call(queueDiscardMessage, { queue: "default", message_id: dead[0]?.id ?? "" })).toMatchObject({ redriven: 1 });
    await bus.crash();
    expect(await bus.call(queueDlqMessages, { queue: "default" })).toEqual([]);
    expect(await bus.call(queueTopicStats, { queue: "default" })).toMatchObject({ depth: 0, dlq_depth: 0 });
  },
);

test.each(TEXTS)("K2.8 a dead letter %j that cannot be read is listed with its text", async (value) => {
  const store = createMemoryStore();
  await store.commit([{ space: "dlq:default", key: "0000000000000003", value }]);
  await using bus = await testBus([], { store });
  expect(await bus.call(queueDlqMessages, { queue: "default" })).toMatchObject([{ payload: value }]);
  expect(await bus.call(queueRedrive, { queue: "default" })).toMatchObject({ redriven: 0 });
});

test.each(TEXTS)("K2.8 a queue whose rules %j cannot be read holds its messages until its subscriber is back", async (value) => {
  const store = createMemoryStore();
  const seen = probe("probe::fn", [{ type: "durable:subscriber", config: { topic: "t", condition_function_id: "probe::none" } }]);
  {
    await using first = await testBus([seen.worker], { store });
    seen.answer = () => Promise.reject(new Error("not now"));
    await first.call(durablePublish, { topic: "t", data: { n: 1 } });
    await first.settle();
  }
  const [name = ""] = (await store.load()).filter(({ space }) => space === "consumers").map(({ key }) => key);
  expect(name).not.toBe("");
  const again = store.reopen();
  await again.commit([{ space: "consumers", key: name, value }]);
  await using bus = await testBus([], { store: again });
  expect(await bus.call(queueTopicStats, { queue: name })).toMatchObject({ depth: 1 });
  await bus.clock.advance(60_000);
  expect(await bus.call(queueTopicStats, { queue: name })).toMatchObject({ depth: 1, dlq_depth: 0 });
});

test.each(["NaN", "x", "", "-1", "1e999"])("K2.7 a counter %j that cannot be read does not stop the numbers", async (value) => {
  const store = createMemoryStore();
  const good = { space: "state:s", key: "k", value: '{"r":9,"c":9,"v":1}' };
  await store.commit([{ space: "meta", key: "rev", value }, good]);
  await using bus = await testBus([], { store });
  await bus.call(stateSet, { scope: "s", key: "n", value: 1 });
  const { rev } = await bus.call(stateGetWithRev, { scope: "s", key: "n" });
  expect(Number.isSafeInteger(rev) && rev > 9).toBe(true);
});

test.each(["[", "{}", "[1,null]", '[{"trace_id":"a"}]', '[{"trace_id":"a","span_id":"b","name":"n","service_name":"s","attributes":[1]}]'])(
  "K2.7 a trace row %j costs no start",
  async (value) => {
    const store = createMemoryStore();
    await store.commit([{ space: "trace", key: "a/0000000000000001", value }]);
    await using bus = await testBus([], { store });
    expect(await bus.call("engine::traces::list", { include_internal: true })).toMatchObject({ total: 0 });
  },
);
