import { BusError } from "@iii/sdk";
import { ManualClock, until } from "@iii/sdk/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  stateDelete,
  stateGet,
  stateGetWithRev,
  stateList,
  stateListGroups,
  stateSet,
  stateTransact,
  stateUpdate,
} from "../../src/builtin/storage/state/contract.ts";
import { createMemoryStore, testBus } from "../../src/testing/index.ts";
import { probe } from "./helpers.ts";

const at = (key: string, scope = "s") => ({ scope, key });

describe("state", () => {
  test("set answers old and new, get and delete of nothing have no result", async () => {
    await using bus = await testBus();
    expect(await bus.call(stateGet, at("k"))).toBeUndefined();
    expect(await bus.call(stateDelete, at("k"))).toBeUndefined();
    expect(await bus.call(stateSet, { ...at("k"), value: 1 })).toEqual({ old_value: null, new_value: 1 });
    expect(await bus.call(stateSet, { ...at("k"), data: { a: 2 } })).toEqual({ old_value: 1, new_value: { a: 2 } });
    expect(await bus.call(stateGet, at("k"))).toEqual({ a: 2 });
    expect(await bus.call(stateDelete, at("k"))).toEqual({ a: 2 });
    expect(await bus.call(stateListGroups, {})).toEqual({ groups: [] });
  });

  test("set without a value is refused", async () => {
    await using bus = await testBus();
    await expect(bus.call(stateSet, at("k"))).rejects.toMatchObject({ code: "deserialization_error" });
  });

  test("a malformed operation fails the whole call, a failing one is reported", async () => {
    await using bus = await testBus();
    const bad = { ...at("k"), ops: [{ type: "increment", path: "n", by: 0.5 }] };
    await expect(bus.call("state::update", bad)).rejects.toMatchObject({ code: "deserialization_error" });
    const ops = [
      { type: "set" as const, path: "a", value: [] },
      { type: "increment" as const, path: "a", by: 1 },
    ];
    expect(await bus.call(stateUpdate, { ...at("k"), ops })).toEqual({
      old_value: null,
      new_value: { a: [] },
      errors: [{ op_index: 1, code: "increment.not_number", message: expect.any(String) }],
    });
  });

  test("a list keeps insertion order, also over restarts, and can show keys", async () => {
    await using bus = await testBus();
    for (const key of ["z", "a", "m"]) await bus.call(stateSet, { ...at(key), value: key });
    await bus.call(stateSet, { ...at("z"), value: "z2" });
    await bus.call(stateDelete, at("a"));
    await bus.call(stateSet, { ...at("a"), value: "a2" });
    await bus.crash();
    expect(await bus.call(stateList, { scope: "s" })).toEqual(["z2", "m", "a2"]);
    const rows = await bus.call(stateList, { scope: "s", with_keys: true, prefix: "m" });
    expect(rows).toEqual([{ key: "m", value: "m", rev: expect.any(Number) }]);
  });

  test("a deleted and recreated key never looks unchanged, also over restarts", async () => {
    await using bus = await testBus();
    await bus.call(stateSet, { ...at("other"), value: 0 });
    await bus.call(stateSet, { ...at("k"), value: 1 });
    const { rev } = await bus.call(stateGetWithRev, at("k"));
    await bus.call(stateDelete, at("k"));
    expect(await bus.call(stateGetWithRev, at("k"))).toEqual({ value: null, rev: 0 });
    await bus.crash();
    await bus.call(stateSet, { ...at("k"), value: 1 });
    expect((await bus.call(stateGetWithRev, at("k"))).rev).toBeGreaterThan(rev);
  });

  test("a value over the limit is refused and changes nothing", async () => {
    await using bus = await testBus([], { config: { limits: { max_value_bytes: 1_024 } } });
    await bus.call(stateSet, { ...at("k"), value: 1 });
    await expect(bus.call(stateSet, { ...at("k"), value: "x".repeat(2_000) })).rejects.toMatchObject({ code: "VALUE_TOO_LARGE" });
    expect(await bus.call(stateGet, at("k"))).toBe(1);
  });

  test("a value too deep to be written again inside of its event is refused, and nothing is changed", async () => {
    const nested = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));
    await using bus = await testBus();
    await bus.call(stateSet, { ...at("k"), value: nested(512) });
    const { rev } = await bus.call(stateGetWithRev, at("k"));
    await expect(bus.call(stateSet, { ...at("k"), value: nested(513) })).rejects.toMatchObject({ code: "payload_too_deep" });
    const ops = [{ type: "set" as const, path: "", value: { a: nested(512) } }];
    await expect(bus.call(stateUpdate, { ...at("k"), ops })).rejects.toMatchObject({ code: "payload_too_deep" });
    expect(await bus.call(stateGetWithRev, at("k"))).toEqual({ value: nested(512), rev });
  });

  test("no answer leaves before its write is durable, and a read of that key waits for it", async () => {
    const clock = new ManualClock();
    await using bus = await testBus([], { clock, store: createMemoryStore({ clock, latency_ms: 50 }) });
    const order: string[] = [];
    const note = (what: string) => () => void order.push(what);
    const written = bus.call(stateSet, { ...at("k"), value: 1 }).then(note("written"));
    const read = bus.call(stateGet, at("k")).then(note("read"));
    const groups = bus.call(stateListGroups, {}).then(note("groups"));
    const other = bus.call(stateGet, at("other")).then(note("other"));
    await bus.settle();
    expect(order).toEqual(["other"]);
    await clock.advance(50);
    await Promise.all([written, read, groups, other]);
    expect(order).toEqual(["other", "written", "read", "groups"]);
  });

  test("after a failed commit nothing is acknowledged any more", async () => {
    const store = createMemoryStore({ fault: (commit) => (commit > 1 ? new BusError("store_unavailable", "a failed sync") : undefined) });
    await using bus = await testBus([], { store });
    await bus.call(stateSet, { ...at("a"), value: 1 });
    const settled: string[] = [];
    const note = (name: string, promise: Promise<unknown>) =>
      void promise.then(
        () => settled.push(`${name} ok`),
        () => settled.push(`${name} failed`),
      );
    note("write", bus.call(stateSet, { ...at("b"), value: 1 }));
    note("read", bus.call(stateGet, at("b")));
    await bus.settle();
    expect(settled).not.toContain("write ok");
    expect(settled).not.toContain("read ok");
  });
});

describe("state::transact", () => {
  test("writes, revisions and a conflict that changes nothing", async () => {
    await using bus = await testBus();
    const first = await bus.call(stateTransact, {
      checks: [{ ...at("a"), rev: 0 }],
      writes: [
        { ...at("a"), value: { n: 1 } },
        { ...at("b"), value: 2 },
      ],
    });
    expect(first).toEqual({ ok: true, revs: [expect.any(Number), expect.any(Number)] });
    const { rev } = await bus.call(stateGetWithRev, at("a"));
    expect(first.ok && first.revs[0]).toBe(rev);
    const stale = await bus.call(stateTransact, { checks: [{ ...at("a"), rev: 0 }], writes: [{ ...at("b"), delete: true }] });
    expect(stale).toEqual({ ok: false, conflict: { ...at("a"), rev } });
    expect(await bus.call(stateGet, at("b"))).toBe(2);
    const ops = [{ type: "increment" as const, path: "n", by: 1 }];
    await bus.call(stateTransact, {
      writes: [
        { ...at("a"), ops },
        { ...at("a"), ops },
        { ...at("b"), delete: true },
      ],
    });
    expect(await bus.call(stateGet, at("a"))).toEqual({ n: 3 });
    expect(await bus.call(stateGet, at("b"))).toBeUndefined();
  });

  test.each([
    ["an unknown queue", { enqueue: [{ queue: "nope", function_id: "f::g", data: {} }] }, "enqueue_error"],
    ["a fifo message without its group", { enqueue: [{ queue: "turn-step", function_id: "f::g", data: {} }] }, "enqueue_error"],
    ["a failing operation", { writes: [{ ...at("b"), ops: [{ type: "set", path: "__proto__", value: 1 }] }] }, "INVALID_ARGUMENTS"],
    ["an acknowledgement of no delivery", { ack: true }, "fenced"],
  ])("with %s nothing at all happens", async (_title, part, code) => {
    await using bus = await testBus();
    const commits = bus.store.stats().commits;
    const input = { writes: [{ ...at("a"), value: 1 }], events: [{ stream_name: "t", group_id: "g", item_id: "i", data: 1 }], ...part };
    if ("writes" in part) input.writes = [{ ...at("a"), value: 1 }, ...(part.writes as never[])];
    await expect(bus.call("state::transact", input)).rejects.toMatchObject({ code });
    expect(bus.store.stats().commits).toBe(commits);
    expect(await bus.call(stateGet, at("a"))).toBeUndefined();
    expect(await bus.call("stream::list", { stream_name: "t", group_id: "g" })).toEqual([]);
  });

  test("state, message and event are one commit, and a crash shows all or none of them", async () => {
    const steps = probe("steps::run");
    await using bus = await testBus([steps.worker]);
    const before = bus.store.stats().commits;
    await bus.call(stateTransact, {
      writes: [{ ...at("a"), value: 1 }],
      enqueue: [{ queue: "turn-step", function_id: "steps::away", data: { session_id: "x" } }],
      events: [{ stream_name: "t", group_id: "g", item_id: "i", data: "e" }],
    });
    expect(bus.store.stats().commits).toBe(before + 1);
    await bus.crash();
    expect(await bus.call(stateGet, at("a"))).toBe(1);
    expect(await bus.call("stream::get", { stream_name: "t", group_id: "g", item_id: "i" })).toBe("e");
    expect(await bus.call("engine::queue::topic_stats", { queue: "turn-step" })).toMatchObject({ depth: 1 });
  });

  test("it publishes to subscribers after the commit", async () => {
    const ears = probe("ears::hear", [{ type: "subscribe", config: { topic: "news" } }]);
    await using bus = await testBus([ears.worker]);
    await bus.call(stateTransact, { publish: [{ topic: "news", data: { n: 1 } }] });
    await bus.settle();
    expect(ears.inputs()).toEqual([{ n: 1 }]);
  });

  test("under any interleaving of checked writers, every success saw the newest value and revisions rise", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 25 }), async (who) => {
        await using bus = await testBus();
        const known = [0, 0, 0];
        let successes = 0;
        let last = 0;
        const moves = who.map(async (writer) => {
          const answer = await bus.call(stateTransact, {
            checks: [{ ...at("n"), rev: known[writer] ?? 0 }],
            writes: [{ ...at("n"), ops: [{ type: "increment", path: "count", by: 1 }] }],
          });
          if (!answer.ok) {
            known[writer] = answer.conflict.rev;
            return;
          }
          const [rev = 0] = answer.revs;
          expect(rev).toBeGreaterThan(last);
          last = rev;
          successes += 1;
          known[writer] = rev;
        });
        await Promise.all(moves);
        expect(await bus.call(stateGet, at("n"))).toEqual(successes === 0 ? undefined : { count: successes });
      }),
      { numRuns: 15 },
    );
  });
});

describe("state triggers", () => {
  const trigger = (config: object) => [{ type: "state", config }];
  type Event = { event_type: string; key: string; new_value: unknown; old_value: unknown; event_id: string; rev: number };

  test("fire for matching scope and key, with old and new value, in order", async () => {
    const all = probe("watch::all", trigger({ scope: "s" }));
    const one = probe("watch::one", trigger({ scope: "s", key: "a" }));
    const none = probe("watch::none", trigger({ scope: "other" }));
    await using bus = await testBus([all.worker, one.worker, none.worker]);
    await bus.call(stateSet, { ...at("a"), value: 1 });
    await bus.call(stateSet, { ...at("b"), value: 1 });
    await bus.call(stateSet, { ...at("a"), value: 2 });
    await bus.call(stateDelete, at("a"));
    await bus.call(stateDelete, at("never"));
    await bus.settle();
    expect(one.inputs<Event>().map(({ event_type, old_value, new_value }) => [event_type, old_value, new_value])).toEqual([
      ["state:created", null, 1],
      ["state:updated", 1, 2],
      ["state:deleted", 2, null],
    ]);
    expect(all.seen).toHaveLength(5);
    expect(none.seen).toHaveLength(0);
  });

  test("a condition that says false skips, one that fails skips too, anything else does not", async () => {
    const verdict = probe("watch::verdict");
    const seen = probe("watch::seen", trigger({ scope: "s", condition_function_id: "watch::verdict" }));
    await using bus = await testBus([verdict.worker, seen.worker]);
    verdict.answer = (input) => {
      const { key } = input as Event;
      if (key === "throws") throw new BusError("invalid_payload", "no");
      return key === "no" ? false : 0;
    };
    for (const key of ["yes", "no", "throws"]) await bus.call(stateSet, { ...at(key), value: 1 });
    await bus.settle();
    expect(seen.inputs<Event>().map(({ key }) => key)).toEqual(["yes"]);
  });

  test("a durable consumer gets what was committed while it was away, in order per key, each with its id", async () => {
    const eyes = probe("watch::durable", trigger({ scope: "s", durable: "eyes" }));
    await using bus = await testBus([eyes.worker]);
    await bus.call(stateSet, { ...at("a"), value: 1 });
    await until(() => eyes.seen.length === 1);
    eyes.answer = () => {
      throw new BusError("invocation_error", "down");
    };
    for (const n of [2, 3]) await bus.call(stateSet, { ...at("a"), value: n });
    await bus.call(stateSet, { ...at("b"), value: 9 });
    await bus.settle();
    eyes.answer = () => null;
    await bus.crash();
    await bus.clock.advance(20_000);
    const events = eyes.inputs<Event>();
    const done = new Map(events.map((event) => [event.event_id, event]));
    expect([...done.values()].filter(({ key }) => key === "a").map(({ new_value }) => new_value)).toEqual([1, 2, 3]);
    expect([...done.values()].filter(({ key }) => key === "b")).toHaveLength(1);
    expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(4);
    expect(await bus.call("engine::queue::topic_stats", { queue: "__state:eyes" })).toMatchObject({ depth: 0 });
  });

  test("a durable consumer collects while its worker is not there", async () => {
    await using bus = await testBus();
    const first = await bus.connect("first");
    const got: unknown[] = [];
    const register = (iii: typeof first): void => {
      iii.registerFunction("watch::late", (input) => {
        got.push((input as Event).new_value);
        return null;
      });
      iii.registerTrigger({ type: "state", function_id: "watch::late", config: { scope: "s", durable: "late" } });
    };
    register(first);
    await bus.settle();
    await first.close();
    for (const n of [1, 2, 3]) await bus.call(stateSet, { ...at("k"), value: n });
    await bus.crash();
    expect(got).toEqual([]);
    register(await bus.connect("second"));
    await until(() => got.length === 3);
    expect(got).toEqual([1, 2, 3]);
  });

  test("an event whose handler went away goes to whoever serves the function next", async () => {
    await using bus = await testBus();
    const owner = await bus.connect("owner");
    const got: unknown[] = [];
    owner.registerFunction("watch::moves", (input) => got.push((input as Event).new_value));
    owner.registerTrigger({ type: "state", function_id: "watch::moves", config: { scope: "s" } });
    const newer = await bus.connect("newer");
    let asked = false;
    newer.registerFunction("watch::moves", () => {
      asked = true;
      return new Promise(() => undefined);
    });
    await bus.settle();
    for (const n of [1, 2]) await bus.call(stateSet, { ...at("k"), value: n });
    await until(() => asked);
    await newer.close({ drain_ms: 0 });
    await bus.clock.advance(1_000);
    expect(got).toEqual([1, 2]);
  });

  test("an event's id is never used again, also not that of a delete of nothing before a restart", async () => {
    const eyes = probe("watch::ids", trigger({ scope: "s", durable: "ids" }));
    await using bus = await testBus([eyes.worker]);
    await bus.call(stateDelete, at("k"));
    await bus.settle();
    await bus.crash();
    await bus.call(stateSet, { ...at("k"), value: 1 });
    await bus.settle();
    const events = eyes.inputs<Event>();
    expect(events.map(({ event_type }) => event_type)).toEqual(["state:deleted", "state:created"]);
    expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(2);
  });

  test("a trigger that sets off itself is stopped", async () => {
    const loop = probe("watch::loop", trigger({ scope: "s" }));
    await using bus = await testBus([loop.worker]);
    const iii = await bus.connect("looper");
    const codes: string[] = [];
    iii.registerFunction("loop::write", async (input) => {
      try {
        return await iii.trigger(stateSet, { ...at("k"), value: input });
      } catch (thrown) {
        codes.push((thrown as BusError).code);
        throw thrown;
      }
    });
    iii.registerTrigger({ type: "state", function_id: "loop::write", config: { scope: "s" } });
    await bus.settle();
    await bus.call(stateSet, { ...at("k"), value: 1 });
    await until(() => codes.length > 0);
    await bus.clock.advance(60_000);
    expect(codes[0]).toBe("trigger_loop");
    expect(loop.seen.length).toBeLessThan(40);
  });
});
