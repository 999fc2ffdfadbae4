// The system's clock is set forward or back by hours while something waits: nothing ends early, nothing stalls.
import { durablePublish, queueEnqueue, queueTopicStats, stateSet, stateTransact } from "@iii/engine/contract";
import { createMemoryStore, type TestBus, testBus } from "@iii/engine/testing";
import { ManualClock } from "@iii/sdk/testing";
import { describe, expect, test } from "vitest";
import { keepProcess } from "../src/builtin/supervisor/keeper.ts";
import type { ChildEvents } from "../src/builtin/supervisor/port.ts";
import { Pressure } from "../src/shell/pressure.ts";
import { Peer } from "./fixtures/peer.ts";
import { probe } from "./storage/helpers.ts";

const HOUR = 3_600_000;

describe.each([
  ["3 hours back", -3 * HOUR],
  ["2 hours forward", 2 * HOUR],
  ["a year forward", 8_760 * HOUR],
  ["not at all", 0],
])("K8.1, K8.2 the clock is set %s", (_title, ms) => {
  const depth = async (bus: TestBus): Promise<number> => (await bus.call(queueTopicStats, { queue: "default" })).depth;

  test("K8.1 a call ends at its deadline, and not before", async () => {
    await using bus = await testBus();
    const worker = new Peer(bus);
    const caller = new Peer(bus);
    worker.say({ type: "registerfunction", id: "slow::fn" });
    caller.say({ type: "invokefunction", invocation_id: "a", function_id: "slow::fn", timeout_ms: 3_000, data: {} });
    bus.clock.step(ms);
    await bus.clock.advance(2_900);
    expect(caller.last("invocationresult")).toBeUndefined();
    await bus.clock.advance(200);
    expect(caller.last("invocationresult")).toMatchObject({ error: { code: "TIMEOUT" } });
  });

  test("K8.1 a nested call has what is left of the outer one, and its executor is told how much, beside the date", async () => {
    await using bus = await testBus();
    const worker = new Peer(bus);
    const caller = new Peer(bus);
    worker.say({ type: "registerfunction", id: "slow::fn" });
    caller.say({ type: "invokefunction", invocation_id: "a", function_id: "slow::fn", timeout_ms: 3_000, data: {} });
    const parent = worker.last("invokefunction")?.["invocation_id"];
    await bus.clock.advance(1_000);
    bus.clock.step(ms);
    worker.say({ type: "invokefunction", invocation_id: "b", function_id: "slow::fn", parent, timeout_ms: 60_000, data: {} });
    const deadline_ms = bus.clock.now() + 2_000;
    expect(worker.last("invokefunction")?.["context"]).toMatchObject({ remaining_ms: 2_000, deadline_ms });
  });

  test("K8.1 a cancelled call has its time to stop", async () => {
    await using bus = await testBus();
    const worker = new Peer(bus);
    const caller = new Peer(bus);
    worker.say({ type: "registerfunction", id: "slow::fn" });
    caller.say({ type: "invokefunction", invocation_id: "a", function_id: "slow::fn", timeout_ms: 0, data: {} });
    caller.say({ type: "cancel", invocation_id: "a" });
    bus.clock.step(ms);
    await bus.clock.advance(4_900);
    expect(caller.last("invocationresult")).toBeUndefined();
    await bus.clock.advance(200);
    expect(caller.last("invocationresult")).toMatchObject({ error: { code: "cancelled" } });
  });

  test("K8.1 a silent peer is given up after two pings, an answering one never", async () => {
    await using bus = await testBus();
    const [dead, alive] = [new Peer(bus), new Peer(bus)];
    dead.answers = false;
    bus.clock.step(ms);
    await bus.clock.advance(9_000);
    expect(dead.ended).toBe(false);
    await bus.clock.advance(7_000);
    expect([dead.ended, alive.ended]).toEqual([true, false]);
  });

  test("K8.1 a reader is dropped after its time without progress, and not before", async () => {
    const clock = new ManualClock();
    const dropped: string[] = [];
    const pressure = new Pressure({ clock, max_buffered_bytes: 10, slow_consumer_ms: 1_000, drop: (id) => void dropped.push(id) });
    const wire = { send() {}, pause() {}, resume() {}, close() {}, terminate() {}, buffered: 20 };
    pressure.sent("slow", wire, 20, undefined);
    clock.step(ms);
    await clock.advance(900);
    expect(dropped).toEqual([]);
    await clock.advance(200);
    expect(dropped).toContain("slow");
    pressure.stop();
  });

  test("K8.1 a failed message is tried again after its backoff, also by the next engine", async () => {
    const seen = probe("retry::fn");
    seen.answer = () => Promise.reject(new Error("not yet"));
    await using bus = await testBus([seen.worker], { config: { queues: { slow: { backoff_ms: 2_000, max_retries: 9 } } } });
    await bus.call(queueEnqueue, { queue: "slow", function_id: "retry::fn", data: {} });
    await bus.settle();
    expect(seen.seen).toHaveLength(1);
    bus.clock.step(ms);
    await bus.clock.advance(1_900);
    expect(seen.seen).toHaveLength(1);
    await bus.clock.advance(200);
    expect(seen.seen).toHaveLength(2);
    bus.clock.step(ms);
    await bus.crash();
    await bus.clock.advance(10_000);
    expect(seen.seen.length).toBeGreaterThanOrEqual(3);
  });

  test("K8.1 a delayed message comes when its delay is over, also when the engine was restarted", async () => {
    const seen = probe("later::fn");
    await using bus = await testBus([seen.worker]);
    const message = { queue: "default", function_id: "later::fn", data: {}, delay_ms: 600_000 };
    await bus.call(stateTransact, { enqueue: [message] });
    bus.clock.step(ms);
    await bus.clock.advance(590_000);
    expect([seen.seen.length, await depth(bus)]).toEqual([0, 1]);
    await bus.clock.advance(11_000);
    expect([seen.seen.length, await depth(bus)]).toEqual([1, 0]);
    await bus.call(queueEnqueue, message);
    bus.clock.step(ms);
    await bus.crash();
    // A date is all that the next engine has: set forward, it is due; set back, it waits no longer than it was meant to.
    await bus.clock.advance(601_000);
    expect([seen.seen.length, await depth(bus)]).toEqual([2, 0]);
  });

  test("K8.1 a live event is sent again when its subscriber went away", async () => {
    await using bus = await testBus();
    const [first, second] = [new Peer(bus), new Peer(bus)];
    for (const peer of [second, first]) peer.say({ type: "registerfunction", id: "live::fn" });
    second.say({ type: "registertrigger", id: "t", trigger_type: "state", function_id: "live::fn", config: { scope: "s" } });
    await bus.call(stateSet, { scope: "s", key: "k", value: 1 });
    expect(first.last("invokefunction")).toBeDefined();
    bus.clock.step(ms);
    first.terminate();
    await bus.clock.advance(300);
    expect(second.last("invokefunction")).toMatchObject({ function_id: "live::fn", payload: { key: "k" } });
  });

  test("K8.1 an unused channel is closed after five minutes, and not before", async () => {
    await using bus = await testBus();
    const { reader } = await bus.call<{ reader: { channel_id: string; access_key: string } }>("engine::channels::create", {});
    const path = `/ws/channels/${reader.channel_id}?key=${reader.access_key}&dir=read`;
    bus.clock.step(ms);
    await bus.clock.advance(4 * 60_000);
    expect(bus.engine.check(path)).toBe(101);
    await bus.clock.advance(3 * 60_000);
    expect(bus.engine.check(path)).toBe(404);
  });

  test("K8.1 a topic's message waits for its subscriber's retry", async () => {
    const seen = probe("topic::fn", [{ type: "durable:subscriber", config: { topic: "t", queue_config: { backoffDelayMs: 1_000 } } }]);
    seen.answer = () => (seen.seen.length === 1 ? Promise.reject(new Error("no")) : null);
    await using bus = await testBus([seen.worker]);
    await bus.call(durablePublish, { topic: "t", data: 1 });
    bus.clock.step(ms);
    await bus.clock.advance(900);
    expect(seen.seen).toHaveLength(1);
    await bus.clock.advance(200);
    expect(seen.seen).toHaveLength(2);
  });

  test("K8.1 a process that dies often is a crash loop, however the clock stands", async () => {
    const clock = new ManualClock();
    let events: ChildEvents | undefined;
    const keeper = keepProcess({
      spec: { argv: ["x"], cwd: ".", env: {}, ipc: false },
      restart: { policy: "on-failure", backoff_ms: 100 },
      clock,
      spawner: {
        spawn(_spec, its) {
          events = its;
          return { pid: 1, send() {}, kill() {} };
        },
      },
      events: { started() {}, ended() {}, message() {}, line() {} },
    });
    keeper.start();
    for (let n = 0; n < 6; n += 1) {
      clock.step(ms);
      events?.exit({ code: 1, signal: null });
      await clock.advance(4_000);
    }
    expect(keeper.state).toBe("crash_loop");
  });
});

test("K8.1 messages of an engine that stopped are due at their dates", async () => {
  const seen = probe("later::fn");
  const store = createMemoryStore();
  await using bus = await testBus([seen.worker], { store });
  await bus.call(queueEnqueue, { queue: "default", function_id: "later::fn", data: {}, delay_ms: 600_000 });
  await bus.clock.advance(300_000);
  await bus.crash();
  await bus.clock.advance(290_000);
  expect(seen.seen).toHaveLength(0);
  await bus.clock.advance(11_000);
  expect(seen.seen).toHaveLength(1);
});
