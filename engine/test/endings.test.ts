// How connections, calls and the engine end: what was begun has its time, and nobody serves who has said goodbye.
import { triggersList, workersRegister } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { notingLogger } from "./fixtures/noted.ts";
import { Peer } from "./fixtures/peer.ts";

test("K11.4 a void call outlives its caller; a call that somebody waits for is cancelled", async () => {
  await using bus = await testBus();
  const [worker, caller] = [new Peer(bus), new Peer(bus)];
  worker.say({ type: "registerfunction", id: "late::fn" });
  const call = (more: object) => caller.say({ type: "invokefunction", function_id: "late::fn", data: {}, ...more });
  call({ action: { type: "void" } });
  call({ action: { type: "void" }, invocation_id: "ignored" });
  call({});
  call({ invocation_id: "waits" });
  const ids = worker.frames.filter(({ type }) => type === "invokefunction").map((frame) => frame["invocation_id"]);
  caller.terminate();
  await bus.settle();
  expect(worker.frames.filter(({ type }) => type === "cancel").map((frame) => frame["invocation_id"])).toEqual([ids[3]]);
  // Their answers are for nobody, and free the executor.
  for (const id of ids) worker.say({ type: "invocationresult", invocation_id: id, function_id: "late::fn", result: 1 });
  const again = new Peer(bus);
  again.say({ type: "invokefunction", invocation_id: "a", function_id: "late::fn", data: {} });
  worker.say({
    type: "invocationresult",
    invocation_id: worker.last("invokefunction")?.["invocation_id"],
    function_id: "late::fn",
    result: 2,
  });
  expect(again.last("invocationresult")).toMatchObject({ payload: 2 });
});

test("K11.4 void calls are bounded per executor, also those without a caller, and end at their deadline", async () => {
  const log = notingLogger();
  await using bus = await testBus([], { config: { limits: { max_in_flight: 3 } }, log });
  const worker = new Peer(bus);
  worker.say({ type: "registerfunction", id: "late::fn" });
  for (let n = 0; n < 5; n += 1) {
    const caller = new Peer(bus);
    caller.say({ type: "invokefunction", function_id: "late::fn", action: { type: "void" }, timeout_ms: 1_000, data: {} });
    caller.terminate();
  }
  expect(worker.frames.filter(({ type }) => type === "invokefunction")).toHaveLength(3);
  await bus.clock.advance(1_100);
  expect(worker.frames.filter(({ type }) => type === "cancel")).toHaveLength(3);
  const caller = new Peer(bus);
  caller.say({ type: "invokefunction", invocation_id: "a", function_id: "late::fn", data: {} });
  expect(caller.last("invocationresult")).toBeUndefined();
});

test("K11.2 triggers::list gives clients that never announce instances too, old workers instances, new ones types", async () => {
  await using bus = await testBus();
  const listOf = async (announce: object | undefined) => {
    const peer = new Peer(bus);
    const call = (invocation_id: string, function_id: string, data: object) =>
      peer.say({ type: "invokefunction", invocation_id, function_id, data });
    peer.say({
      type: "registertrigger",
      id: `t-${JSON.stringify(announce)}`,
      trigger_type: "subscribe",
      function_id: "x::fn",
      config: { topic: "t" },
    });
    if (announce !== undefined) call("a", workersRegister.id, announce);
    call("b", triggersList.id, {});
    await bus.settle();
    const { triggers } = (peer.last("invocationresult") as { payload: { triggers: { id: string; function_id?: string }[] } }).payload;
    return { types: triggers.some(({ id }) => id === "http"), instances: triggers.some(({ function_id }) => function_id === "x::fn") };
  };
  expect(await listOf(undefined)).toEqual({ types: true, instances: true });
  expect(await listOf({ name: "old", version: "0.11.6" })).toEqual({ types: false, instances: true });
  expect(await listOf({ name: "new", version: "0.22.1" })).toEqual({ types: true, instances: false });
});

test("K11.3 a trigger of an unknown type waits and is said now; it is delivered once somebody provides the type", async () => {
  const log = notingLogger();
  await using bus = await testBus([], { log });
  const [binder, provider] = [new Peer(bus), new Peer(bus)];
  binder.say({ type: "registertrigger", id: "t", trigger_type: "cron", function_id: "x::fn", config: { expression: "* * * * *" } });
  expect(log.warnings()).toEqual([expect.stringContaining("nobody on the bus provides its type")]);
  expect(log.lines.at(-1)?.fields).toMatchObject({ trigger_type: "cron", trigger_id: "t" });
  provider.say({ type: "registertriggertype", id: "cron", description: "d" });
  expect(provider.last("registertrigger")).toMatchObject({ id: "t", function_id: "x::fn" });
  binder.say({ type: "registertrigger", id: "u", trigger_type: "cron", function_id: "x::fn", config: {} });
  expect(log.warnings()).toHaveLength(1);
});

test("K11.3 a function that is called by HTTP is not served, and that is said now", async () => {
  const log = notingLogger();
  await using bus = await testBus([], { log });
  const [owner, caller] = [new Peer(bus), new Peer(bus)];
  owner.say({ type: "registerfunction", id: "web::fn", invocation: { url: "http://127.0.0.1:1/", method: "POST" } });
  expect(log.warnings()).toEqual([expect.stringContaining("called by HTTP")]);
  caller.say({ type: "invokefunction", invocation_id: "a", function_id: "web::fn", data: {} });
  expect(caller.last("invocationresult")).toMatchObject({ error: { code: "function_not_found" } });
  owner.say({ type: "registerfunction", id: "own::fn", invocation: null });
  caller.say({ type: "invokefunction", invocation_id: "b", function_id: "own::fn", data: {} });
  expect(owner.last("invokefunction")).toMatchObject({ function_id: "own::fn" });
});

test("K11.5 an engine that stops lets what runs end, with the calls it makes, and starts nothing new", async () => {
  await using bus = await testBus();
  const [worker, caller, other] = [new Peer(bus), new Peer(bus), new Peer(bus)];
  worker.say({ type: "registerfunction", id: "tool::fn" });
  const call = (peer: Peer, invocation_id: string, function_id: string, data: object = {}) =>
    peer.say({ type: "invokefunction", invocation_id, function_id, data });
  call(caller, "a", "tool::fn");
  let drained = false;
  const draining = bus.engine.drain().then(() => {
    drained = true;
  });
  call(other, "b", "tool::fn");
  expect(other.last("invocationresult")).toMatchObject({ error: { code: "invocation_stopped" } });
  expect(bus.engine.check("/")).toBe(503);
  await bus.clock.advance(3_000);
  call(worker, "c", "state::set", { scope: "s", key: "k", value: 1 });
  await bus.settle();
  expect([drained, worker.last("invocationresult")?.["error"]]).toEqual([false, undefined]);
  worker.say({
    type: "invocationresult",
    invocation_id: worker.last("invokefunction")?.["invocation_id"],
    function_id: "tool::fn",
    result: 1,
  });
  await bus.clock.advance(100);
  await draining;
  expect(caller.last("invocationresult")).toMatchObject({ payload: 1 });
});

test("K11.5 a call that does not end costs five seconds; an idle engine none", async () => {
  await using idle = await testBus();
  await idle.engine.drain();
  await using bus = await testBus();
  const [worker, caller] = [new Peer(bus), new Peer(bus)];
  worker.say({ type: "registerfunction", id: "tool::fn" });
  caller.say({ type: "invokefunction", invocation_id: "a", function_id: "tool::fn", data: {} });
  let drained = false;
  void bus.engine.drain().then(() => {
    drained = true;
  });
  await bus.clock.advance(4_900);
  expect(drained).toBe(false);
  await bus.clock.advance(200);
  expect(drained).toBe(true);
});
