// Values that other systems stumble over: keys of the prototype, depth, texts. What is stored comes back as it was, or is refused by name.
import {
  durablePublish,
  publish,
  queueEnqueue,
  stateDelete,
  stateGet,
  stateList,
  stateSet,
  stateTransact,
  stateUpdate,
  streamGet,
  streamRead,
  streamSend,
  streamSet,
  streamUpdate,
} from "@iii/engine/contract";
import { type TestBus, testBus } from "@iii/engine/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { probe } from "./helpers.ts";

const ODD = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", ""];
const nested = (depth: number): unknown => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`);
const at = { scope: "odd", key: "k" };
const item = { stream_name: "odd", group_id: "g", item_id: "i" };
const text = (value: unknown): string => JSON.stringify(value);

/** Each way in, and what is there afterwards. */
const WAYS: Record<string, (bus: TestBus, value: unknown) => Promise<unknown>> = {
  "state::set": async (bus, value) => {
    await bus.call(stateSet, { ...at, value });
    return bus.call(stateGet, at);
  },
  "state::list": async (bus, value) => {
    await bus.call(stateSet, { ...at, value });
    return (await bus.call(stateList, { scope: at.scope }))[0];
  },
  "state::update, set at the root": async (bus, value) => {
    await bus.call(stateUpdate, { ...at, ops: [{ type: "set", path: "", value }] });
    return bus.call(stateGet, at);
  },
  "state::transact": async (bus, value) => {
    await bus.call(stateTransact, { writes: [{ ...at, value }] });
    return bus.call(stateGet, at);
  },
  "state::transact, an event": async (bus, data) => {
    await bus.call(stateTransact, { events: [{ ...item, data }] });
    return bus.call(streamGet, item);
  },
  "stream::set": async (bus, data) => {
    await bus.call(streamSet, { ...item, data });
    return bus.call(streamGet, item);
  },
  "stream::set, ephemeral": async (bus, data) => {
    await bus.call(streamSet, { ...item, data, ephemeral: true });
    return bus.call(streamGet, item);
  },
  "stream::update": async (bus, value) => {
    await bus.call(streamUpdate, { ...item, ops: [{ type: "set", path: "", value }] });
    return bus.call(streamGet, item);
  },
};

test.each(Object.keys(WAYS))("K2.1 keys of the prototype are data: %s", async (way) => {
  const write = WAYS[way];
  for (const key of ODD) {
    await using bus = await testBus();
    const value = JSON.parse(`{"a":[{"${key}":{"${key}":1,"n":null}}],"${key}":{"x":true}}`) as unknown;
    expect(text(await write?.(bus, value))).toBe(text(value));
    await bus.crash();
    const after = way.includes("ephemeral")
      ? value
      : await bus.call(way.includes("state") && !way.includes("event") ? stateGet.id : streamGet.id, { ...at, ...item });
    expect(text(after)).toBe(text(value));
    expect(Object.prototype).not.toHaveProperty("x");
  }
});

test.each(Object.keys(WAYS))("K2.1 512 levels are stored and 513 refused: %s", async (way) => {
  const write = WAYS[way];
  await using bus = await testBus();
  expect(await write?.(bus, nested(512))).toEqual(nested(512));
  for (const depth of [513, 520, 2_000]) await expect(write?.(bus, nested(depth))).rejects.toMatchObject({ code: "payload_too_deep" });
  expect(await write?.(bus, 1)).toBe(1);
});

test.each([
  ["publish", (bus: TestBus, data: unknown) => bus.call(publish, { topic: "t", data })],
  ["iii::durable::publish", (bus: TestBus, data: unknown) => bus.call(durablePublish, { topic: "t", data })],
  ["engine::queue::enqueue", (bus: TestBus, data: unknown) => bus.call(queueEnqueue, { queue: "default", function_id: "odd::fn", data })],
  ["stream::send", (bus: TestBus, data: unknown) => bus.call(streamSend, { stream_name: "s", group_id: "g", type: "t", data })],
  ["transact, publish", (bus: TestBus, data: unknown) => bus.call(stateTransact, { publish: [{ topic: "t", data }] })],
  [
    "transact, enqueue",
    (bus: TestBus, data: unknown) => bus.call(stateTransact, { enqueue: [{ queue: "default", function_id: "odd::fn", data }] }),
  ],
] as const)("K4.1, P2.1 a value of 513 levels is an answer, and what is delivered is what was sent: %s", async (_way, send) => {
  const topics = ["subscribe", "durable:subscriber"].map((type) => ({ type, config: { topic: "t" } }));
  const seen = probe("odd::fn", [...topics, { type: "stream", config: { stream_name: "s" } }]);
  await using bus = await testBus([seen.worker]);
  await expect(send(bus, nested(513))).rejects.toMatchObject({ code: "payload_too_deep" });
  await expect(send(bus, nested(3_000))).rejects.toMatchObject({ code: "payload_too_deep" });
  await bus.settle();
  expect(seen.seen).toHaveLength(0);
  const odd = JSON.parse('{"__proto__":{"constructor":1}}') as unknown;
  await send(bus, odd);
  await send(bus, nested(512));
  await bus.settle();
  expect(seen.inputs().map(text).join()).toContain('{"__proto__":{"constructor":1}');
  expect(seen.inputs().map(text).join()).toContain(text(nested(512)));
});

test("K2.1 paths of update operations alone refuse keys of the prototype", async () => {
  await using bus = await testBus();
  for (const path of ["__proto__", "constructor", "prototype"]) {
    const { errors } = await bus.call(stateUpdate, { ...at, ops: [{ type: "set", path, value: 1 }] });
    expect(errors).toMatchObject([{ code: "set.path.proto_polluted" }]);
    const ops = [{ type: "merge" as const, value: { inner: JSON.parse(`{"${path}":1}`) as unknown } }];
    const { new_value } = await bus.call(stateUpdate, { ...at, ops });
    expect(text(new_value)).toBe(`{"inner":{"${path}":1}}`);
  }
});

test("K2.1 updates leave odd keys of the old value as they are", async () => {
  await using bus = await testBus();
  const value = JSON.parse('{"__proto__":{"a":1},"constructor":2,"n":1}') as unknown;
  await bus.call(stateSet, { ...at, value });
  await bus.call(stateUpdate, {
    ...at,
    ops: [
      { type: "increment", path: "n", by: 1 },
      { type: "merge", value: { m: 1 } },
    ],
  });
  await bus.call(stateUpdate, {
    ...at,
    ops: [
      { type: "remove", path: "m" },
      { type: "append", path: "l", value: "x" },
    ],
  });
  expect(text(await bus.call(stateDelete, at))).toBe('{"__proto__":{"a":1},"constructor":2,"n":2,"l":"x"}');
});

test("K2.1 any JSON value is stored and read back as it was, also after a crash", async () => {
  const key = fc.oneof(fc.constantFrom(...ODD), fc.string());
  const { any } = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(null, true, -0.5, 1e300, "\ud800", "\u2028", ""),
      fc.string({ unit: "binary" }),
      fc.array(tie("any"), { maxLength: 4 }),
      fc.array(fc.tuple(key, tie("any")), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
    ),
  }));
  await using bus = await testBus();
  await fc.assert(
    fc.asyncProperty(any, async (value) => {
      for (const way of ["state::set", "state::transact", "stream::set", "stream::set, ephemeral"]) {
        // Lone surrogates have no UTF-8: they travel as escapes and come back the same.
        expect(text((await WAYS[way]?.(bus, value)) ?? null)).toBe(text(value ?? null));
      }
    }),
    { numRuns: 60 },
  );
  const before = text(await bus.call(stateGet, at));
  await bus.crash();
  expect(text(await bus.call(stateGet, at))).toBe(before);
  expect((await bus.call(streamRead, { stream_name: "odd", group_id: "g" })).items.length).toBeLessThanOrEqual(1);
});
