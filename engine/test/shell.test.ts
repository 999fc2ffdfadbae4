// The shell around the core: silence, slow readers, deadlines, built-in input, and what the catalogue tells.
import {
  functionsInfo,
  registeredTriggersList,
  registerTrigger,
  triggersList,
  unregisterTrigger,
  workersRegister,
} from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { NOBODY } from "../src/core/rights.ts";
import { Peer } from "./fixtures/peer.ts";

test("a peer that stays silent through two pings is given up, and its callers hear it; one that answers stays", async () => {
  await using bus = await testBus([]);
  const dead = new Peer(bus);
  const alive = new Peer(bus);
  dead.say({ type: "registerfunction", id: "dead::fn" });
  const call = bus.call("dead::fn", {}, { timeout_ms: 0 });
  call.catch(() => undefined);
  dead.answers = false;
  await bus.clock.advance(16_000);
  await expect(call).rejects.toMatchObject({ code: "invocation_stopped" });
  expect([dead.ended, alive.ended]).toEqual([true, false]);
  expect(alive.pings).toBeGreaterThanOrEqual(3);
});

test("who sends to a full reader is paused until the reader takes what waits", async () => {
  await using bus = await testBus([]);
  const reader = new Peer(bus);
  const sender = new Peer(bus);
  reader.say({ type: "registerfunction", id: "slow::fn" });
  const invoke = () => sender.say({ type: "invokefunction", invocation_id: crypto.randomUUID(), function_id: "slow::fn", data: {} });
  invoke();
  expect(sender.paused).toBe(false);
  reader.buffered = 20 * 1_048_576;
  invoke();
  expect(sender.paused).toBe(true);
  reader.buffered = 0;
  reader.handlers?.drain?.();
  expect(sender.paused).toBe(false);
});

test("a full reader that makes no progress is dropped as a slow consumer, and its senders go on", async () => {
  await using bus = await testBus([]);
  const reader = new Peer(bus);
  const sender = new Peer(bus);
  reader.say({ type: "registerfunction", id: "slow::fn" });
  reader.buffered = 20 * 1_048_576;
  sender.say({ type: "invokefunction", invocation_id: "x", function_id: "slow::fn", data: {} });
  await bus.clock.advance(9_000);
  expect([reader.ended, sender.paused]).toEqual([false, true]);
  await bus.clock.advance(2_000);
  expect([reader.ended, sender.paused]).toEqual([true, false]);
  expect(sender.last("invocationresult")).toMatchObject({ invocation_id: "x", error: { code: "invocation_stopped" } });
});

test("a call that sends no timeout ends after eleven minutes", async () => {
  await using bus = await testBus([]);
  const worker = new Peer(bus);
  const caller = new Peer(bus);
  worker.say({ type: "registerfunction", id: "never::fn" });
  caller.say({ type: "invokefunction", invocation_id: "x", function_id: "never::fn", data: {} });
  await bus.clock.advance(659_000);
  expect(caller.last("invocationresult")).toBeUndefined();
  await bus.clock.advance(2_000);
  expect(caller.last("invocationresult")).toMatchObject({ error: { code: "TIMEOUT" } });
  expect(worker.last("cancel")).toMatchObject({ invocation_id: worker.last("invokefunction")?.["invocation_id"] });
});

test.each([
  ["a missing field is named", '{"scope":"a"}', /'key'/],
  ["a wrong type is named", '{"scope":1,"key":"k"}', /'scope'/],
  ["a payload that is no object", "[1]", /payload/],
  ["every wrong field is named", '{"scope":1}', /'scope' .*; 'key' /],
])("a built-in's input is checked: %s", async (_title, data, message) => {
  await using bus = await testBus([]);
  const peer = new Peer(bus);
  peer.say(`{"type":"invokefunction","invocation_id":"x","function_id":"state::set","data":${data}}`);
  await bus.settle();
  expect(peer.last("invocationresult")).toMatchObject({
    error: { code: "deserialization_error", message: expect.stringMatching(message) },
  });
});

test("a browser is known by its Origin and reaches no credential", async () => {
  await using bus = await testBus([]);
  const page = new Peer(bus, { origin: "http://127.0.0.1:3111" });
  page.say({ type: "invokefunction", invocation_id: "x", function_id: "auth::get_token", data: {} });
  expect(page.last("invocationresult")).toMatchObject({ error: { code: "FORBIDDEN" } });
});

test("a tool that an agent runs may keep its own state but not touch what others own", async () => {
  await using bus = await testBus([]);
  const tool = await bus.connect("tool");
  const owner = await bus.connect("owner");
  tool.registerFunction("tool::write", async (input) => {
    const { scope } = input as { scope: string };
    return tool.trigger("state::set", { scope, key: "k", value: 1 }).then(
      () => "written",
      (error: { code: string }) => error.code,
    );
  });
  await bus.settle();
  const asAgent = (scope: string) => owner.trigger("tool::write", { scope }, { origin: "agent" });
  expect(await asAgent("notes")).toBe("written");
  expect(await asAgent("session")).toBe("FORBIDDEN");
  expect(await owner.trigger("tool::write", { scope: "session" })).toBe("written");
  await expect(owner.trigger("state::set", { scope: "notes", key: "k", value: 1 }, { origin: "agent" })).rejects.toMatchObject({
    code: "FORBIDDEN",
  });
});

test("a trigger that no connection owns outlives who asked for it; a wrong config is the answer of the call", async () => {
  await using bus = await testBus([]);
  const guest = await bus.connect("guest");
  const seen: unknown[] = [];
  guest.registerFunction("guest::on", (event) => void seen.push(event));
  const asker = await bus.connect("asker");
  await expect(asker.trigger(registerTrigger, { trigger_type: "subscribe", function_id: "guest::on", config: {} })).rejects.toMatchObject({
    code: "trigger_registration_failed",
    message: expect.stringContaining("'topic' is missing"),
  });
  const { id } = await asker.trigger(registerTrigger, { trigger_type: "subscribe", function_id: "guest::on", config: { topic: "t" } });
  await asker.close();
  await bus.call("publish", { topic: "t", data: 1 });
  await bus.settle();
  expect(seen).toEqual([1]);
  expect(await bus.call(unregisterTrigger, { id })).toEqual({ removed: true });
  expect(await bus.call(unregisterTrigger, { id })).toEqual({ removed: false });
});

test("triggers that no connection owns are bounded too", async () => {
  await using bus = await testBus([]);
  const wanted = { trigger_type: "nobody::provides", function_id: "a::b", config: {} };
  for (let n = 0; n < 10_000; n += 1) bus.engine.host.registry.bind({ ...wanted, metadata: undefined, principal: NOBODY });
  await expect(bus.call(registerTrigger, wanted)).rejects.toMatchObject({ code: "quota_exceeded" });
});

test("clients of 0.11 get bindings where others get types", async () => {
  await using bus = await testBus([]);
  const old = await bus.connect("old");
  old.registerFunction("old::fn", () => null);
  old.registerTrigger({ id: "b-1", type: "subscribe", function_id: "old::fn", config: { topic: "t" } });
  await old.trigger(workersRegister, { name: "old", version: "0.11.6", pid: 1 });
  expect((await old.trigger(triggersList, {})).triggers).toMatchObject([{ id: "b-1", function_id: "old::fn" }]);
  const types = (await bus.call(triggersList, {})).triggers.map((row) => row.id);
  expect(types).toEqual(expect.arrayContaining(["http", "state", "stream", "subscribe", "engine::functions-available"]));
  expect((await bus.call(registeredTriggersList, {})).registered_triggers).toMatchObject([{ id: "b-1", worker_name: "old", active: true }]);
});

test("the catalogue shows a built-in's schema, its claimants, and changes of the set soon after they happen", async () => {
  await using bus = await testBus([]);
  const watcher = await bus.connect("watcher");
  const seen: string[][] = [];
  watcher.registerFunction("watch::fns", (event) => {
    const { functions } = event as { functions: { function_id: string }[] };
    seen.push(functions.map((row) => row.function_id));
  });
  watcher.registerTrigger({ type: "engine::functions-available", function_id: "watch::fns", config: {} });
  const thief = await bus.connect("thief");
  thief.registerFunction("state::get", () => "mine");
  for (const n of [1, 2, 3]) thief.registerFunction(`new::${n}`, () => n);
  await bus.settle();
  await bus.clock.advance(100);
  expect(seen).toHaveLength(1);
  expect(seen[0]).toEqual(expect.arrayContaining(["new::1", "new::2", "new::3", "state::get"]));
  const info = await bus.call(functionsInfo, { function_id: "state::get" });
  expect(info).toMatchObject({
    worker_name: "iii-state",
    worker_id: null,
    other_owners: [thief.worker_id],
    request_schema: { type: "object" },
  });
});

test("a connection that outlives the engine is back after its restart, registrations and all", async () => {
  await using bus = await testBus([]);
  const guest = await bus.connect("guest");
  guest.registerFunction("guest::fn", () => "still here");
  expect(await bus.call("guest::fn", {})).toBe("still here");
  await bus.crash();
  expect(await bus.call("guest::fn", {})).toBe("still here");
});
