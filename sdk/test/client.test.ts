import { BusError, connect, defineFunction } from "@iii/sdk";
import { ManualClock, ScriptedPeer, seededRandom, settle } from "@iii/sdk/testing";
import { expect, test } from "vitest";
import { z } from "zod";

function setUp(options: { auto?: boolean } = {}) {
  const peer = new ScriptedPeer(options);
  const clock = new ManualClock();
  const iii = connect({ dialer: peer, clock, random: seededRandom() });
  return { peer, clock, iii };
}

const answer = (frame: Record<string, unknown> | undefined, body: object) => ({
  type: "invocationresult",
  invocation_id: frame?.["invocation_id"],
  function_id: frame?.["function_id"],
  ...body,
});

test("the three forms of a call send the same frame", async () => {
  const { peer, iii } = setUp();
  const echo = defineFunction({ id: "t::echo", about: "Echo.", input: z.object({ n: z.number() }), output: z.object({ n: z.number() }) });
  await settle();
  const calls = [iii.trigger(echo, { n: 1 }), iii.trigger("t::echo", { n: 1 }), iii.trigger({ function_id: "t::echo", payload: { n: 1 } })];
  await settle();
  const frames = peer.last.of("invokefunction");
  expect(frames.map(({ invocation_id, ...rest }) => rest)).toEqual(
    Array(3).fill({ type: "invokefunction", function_id: "t::echo", timeout_ms: 30_000, data: { n: 1 } }),
  );
  expect(Object.keys(frames[0] ?? {}).at(-1)).toBe("data");
  for (const frame of frames) peer.last.send(answer(frame, { result: frame["data"] }));
  expect(await Promise.all(calls)).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }]);
});

test.each([
  ["null where the definition says that it may be", z.object({}).nullable(), null],
  ["null where it can only be that", z.null(), null],
  ["nothing where the definition allows nothing", z.unknown(), undefined],
  ["nothing where the definition promises more", z.object({}), undefined],
])("an answer without a result is %s", async (_title, output, expected) => {
  const { peer, iii } = setUp();
  const find = defineFunction({ id: "t::find", about: "Find.", input: z.object({}), output });
  await settle();
  const found = iii.trigger(find, {});
  await settle();
  peer.last.send(answer(peer.last.of("invokefunction")[0], {}));
  expect(await found).toBe(expected);
});

test("an error answer keeps its code, and an answer to nothing outstanding is ignored", async () => {
  const { peer, iii } = setUp();
  await settle();
  const call = iii.trigger("t::x");
  await settle();
  peer.last.send({ type: "invocationresult", invocation_id: "unknown", function_id: "t::x", result: 1 });
  peer.last.send(answer(peer.last.frames[0], { error: { code: "function_not_found", message: "no" } }));
  await expect(call).rejects.toMatchObject({ code: "function_not_found" });
});

test("a payload that is no JSON ends its own call only: here as an error, there as an answer", async () => {
  const { peer, iii } = setUp();
  iii.registerFunction("t::here", () => 1);
  const call = iii.trigger("t::x", {});
  await settle();
  const id = String(peer.last.of("invokefunction")[0]?.["invocation_id"]);
  peer.last.send(`{"type":"invocationresult","invocation_id":"${id}","function_id":"t::x","result":{"a" 1}}`);
  await expect(call).rejects.toMatchObject({ code: "deserialization_error", message: expect.stringContaining("result of 't::x'") });
  peer.last.send('{"type":"invokefunction","invocation_id":"i1","function_id":"t::here","data":{"a" 1}}');
  peer.last.send('{"type":"invokefunction","function_id":"t::here","data":{"a" 1}}');
  peer.last.send('{"type":"invokefunction","invocation_id":"i2","function_id":"t::here","data"');
  peer.last.send({ type: "invokefunction", invocation_id: "i3", function_id: "t::here", data: {} });
  await settle();
  expect(peer.last.of("invocationresult")).toMatchObject([
    { invocation_id: "i1", function_id: "t::here", error: { code: "deserialization_error" } },
    { invocation_id: "i3", result: 1 },
  ]);
});

test("after a loss: reattach, functions, triggers, waiting calls, and the announcement last", async () => {
  const { peer, clock, iii } = setUp();
  iii.registerFunction("t::a", () => 1);
  iii.registerTrigger({ type: "state", function_id: "t::a", config: { scope: "s" } });
  const announced = iii.announce({ name: "t" });
  await settle();
  peer.last.send({ type: "workerregistered", worker_id: "w1", reattach_token: "k1" });
  peer.last.send(answer(peer.last.of("invokefunction")[0], { result: { success: true } }));
  await announced;
  peer.last.drop();
  expect(iii.state).toBe("reconnecting");
  const waiting = iii.trigger("t::b");
  await clock.advance(1_300);
  const types = peer.last.frames.map((frame) => frame["type"]);
  expect(types).toEqual(["reattach", "registerfunction", "registertrigger", "invokefunction", "invokefunction"]);
  expect(peer.last.frames[0]).toEqual({ type: "reattach", previous_worker_id: "w1", reattach_token: "k1" });
  expect(peer.last.frames[3]).toMatchObject({ function_id: "t::b" });
  expect(peer.last.frames[4]).toMatchObject({ function_id: "engine::workers::register" });
  peer.last.send(answer(peer.last.frames[3], { result: 2 }));
  expect(await waiting).toBe(2);
});

test("a second loss before the engine has named the connection keeps the way back", async () => {
  const { peer, clock } = setUp();
  await settle();
  peer.last.send({ type: "workerregistered", worker_id: "w1", reattach_token: "k1" });
  peer.last.drop();
  await clock.advance(1_300);
  peer.last.drop();
  await clock.advance(1_300);
  expect(peer.connections).toHaveLength(3);
  expect(peer.last.frames[0]).toMatchObject({ type: "reattach", previous_worker_id: "w1" });
});

test("a call in flight at a loss rejects and is never sent again", async () => {
  const { peer, clock, iii } = setUp();
  await settle();
  const call = iii.trigger("t::slow");
  await settle();
  peer.last.drop();
  await expect(call).rejects.toMatchObject({ code: "disconnected" });
  await clock.advance(1_300);
  expect(peer.last.of("invokefunction")).toEqual([]);
});

test("a loss because of a message that was too large says so", async () => {
  const { peer, iii } = setUp();
  const call = iii.trigger("t::x", {});
  await settle();
  peer.last.drop(1009);
  await expect(call).rejects.toMatchObject({ code: "disconnected", message: expect.stringContaining("limits.max_frame_bytes") });
});

test("calls wait for the first connection, and only so many", async () => {
  const { peer, iii } = setUp({ auto: false });
  const calls = Array.from({ length: 1_001 }, () => iii.trigger("t::x"));
  await expect(calls.at(-1)).rejects.toMatchObject({ code: "too_many_in_flight" });
  peer.last.open();
  expect(peer.last.of("invokefunction")).toHaveLength(1_000);
  await iii.close();
  const settled = await Promise.allSettled(calls.slice(0, 1_000));
  expect(settled.every((one) => one.status === "rejected" && one.reason instanceof BusError)).toBe(true);
});

test("a call that nobody answers times out shortly after its deadline", async () => {
  const { clock, iii } = setUp();
  await settle();
  const call = iii.trigger("t::x", {}, { timeout_ms: 100 });
  const outcome = expect(call).rejects.toMatchObject({ code: "TIMEOUT" });
  await clock.advance(1_101);
  await outcome;
});

test("calls share one timer, and each ends in its own time; none is left when the client is closed", async () => {
  const { clock, iii } = setUp();
  await settle();
  const before = clock.pending;
  const ended: number[] = [];
  const calls = [300, 100, 200, 100].map((timeout_ms, n) => iii.trigger("t::x", {}, { timeout_ms }).catch(() => ended.push(n)));
  for (let n = 0; n < 100; n += 1) void iii.trigger("t::x", {}).catch(() => {});
  expect(clock.pending).toBe(before + 1);
  await clock.advance(1_099);
  expect(ended).toEqual([]);
  await clock.advance(1);
  expect(ended).toEqual([1, 3]);
  await clock.advance(100);
  expect(ended).toEqual([1, 3, 2]);
  expect(clock.pending).toBe(before + 1);
  await clock.advance(100);
  await Promise.all(calls);
  await iii.close({ drain_ms: 0 });
  await clock.advance(1_000);
  expect(clock.pending).toBe(0);
});

test("aborting sends cancel; the executor has the last word", async () => {
  const { peer, iii } = setUp();
  await settle();
  const abort = new AbortController();
  const call = iii.trigger("t::x", {}, { signal: abort.signal });
  await settle();
  abort.abort();
  const [frame] = peer.last.of("invokefunction");
  expect(peer.last.of("cancel")).toEqual([{ type: "cancel", invocation_id: frame?.["invocation_id"] }]);
  peer.last.send(answer(frame, { result: "stopped half way" }));
  expect(await call).toBe("stopped half way");
});

test("an executor that ignores cancel does not hold its caller", async () => {
  const { clock, iii } = setUp();
  await settle();
  const abort = new AbortController();
  const call = iii.trigger("t::x", {}, { signal: abort.signal, timeout_ms: 0 });
  await settle();
  abort.abort();
  const outcome = expect(call).rejects.toMatchObject({ code: "cancelled" });
  await clock.advance(6_000);
  await outcome;
});

test("a void call asks for no reply", async () => {
  const { peer, iii } = setUp();
  await settle();
  expect(await iii.trigger("t::x", { a: 1 }, { action: { type: "void" } })).toBeUndefined();
  expect(peer.last.frames).toEqual([{ type: "invokefunction", function_id: "t::x", action: { type: "void" }, data: { a: 1 } }]);
});

test("a served definition refuses bad input and bad output by field", async () => {
  const { peer, iii } = setUp();
  const half = defineFunction({ id: "t::half", about: "Halve.", input: z.object({ n: z.number() }), output: z.object({ n: z.int() }) });
  iii.serve(half, ({ n }) => ({ n: n / 2 }));
  await settle();
  expect(peer.last.frames[0]).toMatchObject({
    type: "registerfunction",
    id: "t::half",
    description: "Halve.",
    request_format: { type: "object" },
  });
  const invoke = (id: string, data: unknown) => peer.last.send({ type: "invokefunction", invocation_id: id, function_id: "t::half", data });
  invoke("1", { n: 4, _caller_worker_id: "w" });
  invoke("2", { n: "x" });
  invoke("3", { n: 3 });
  invoke("3", { n: 3 });
  await settle();
  const [ok, bad, wrong, ...more] = peer.last
    .of("invocationresult")
    .sort((a, b) => String(a["invocation_id"]).localeCompare(String(b["invocation_id"])));
  expect(ok).toEqual({ type: "invocationresult", invocation_id: "1", function_id: "t::half", result: { n: 2 } });
  expect(bad?.["error"]).toMatchObject({ code: "invalid_payload", message: expect.stringContaining("'n'") });
  expect(wrong?.["error"]).toMatchObject({ code: "serialization_error", message: expect.stringContaining("'n'") });
  expect(more).toEqual([]);
});

test.each([
  ["nothing", () => undefined, {}],
  ["null", () => null, { result: null }],
  ["a plain error", () => Promise.reject(new Error("boom")), { error: { code: "invocation_failed", message: "boom" } }],
  ["a bus error", () => Promise.reject(new BusError("STORE_FULL", "full")), { error: { code: "STORE_FULL", message: "full" } }],
  ["a cycle", () => cyclic(), { error: { code: "serialization_error", message: expect.any(String) } }],
])("a handler that gives %s", async (_title, handler, body) => {
  const { peer, iii } = setUp();
  iii.registerFunction("t::f", handler);
  await settle();
  peer.last.send({ type: "invokefunction", invocation_id: "1", function_id: "t::f" });
  await settle();
  expect(peer.last.of("invocationresult")).toEqual([{ type: "invocationresult", invocation_id: "1", function_id: "t::f", ...body }]);
});

function cyclic(): object {
  const value: Record<string, unknown> = {};
  value["self"] = value;
  return value;
}

test("a nested call names its parent across awaits, and only while the handler runs on this connection", async () => {
  const { peer, clock, iii } = setUp();
  const other = connect({ dialer: peer, clock, random: seededRandom(2) });
  let later: (() => void) | undefined;
  iii.registerFunction("t::outer", async () => {
    await settle(2);
    void iii.trigger("t::inner").catch(() => undefined);
    void other.trigger("t::elsewhere").catch(() => undefined);
    const woken = new Promise<void>((resolve) => {
      later = resolve;
    });
    void woken.then(() => iii.trigger("t::afterwards")).catch(() => undefined);
    return 1;
  });
  await settle();
  const [first, second] = peer.connections;
  first?.send({
    type: "invokefunction",
    invocation_id: "p1",
    function_id: "t::outer",
    traceparent: "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01",
    baggage: "tenant=acme",
    context: { caller: "c", origin: "agent", deadline_ms: null, depth: 0 },
    data: { session_id: "s1", message_id: "m1" },
  });
  await settle();
  later?.();
  await settle();
  const [inner, afterwards] = first?.of("invokefunction") ?? [];
  expect(inner).toMatchObject({ function_id: "t::inner", parent: "p1", traceparent: expect.stringContaining("aaaa") });
  expect(inner?.["baggage"]).toBe("tenant=acme,iii.session.id=s1,iii.message.id=m1,iii.function.id=t%3A%3Aouter");
  expect(afterwards).toMatchObject({ function_id: "t::afterwards", origin: "agent" });
  expect(afterwards?.["parent"]).toBeUndefined();
  const [elsewhere] = second?.of("invokefunction") ?? [];
  expect(elsewhere).toMatchObject({ function_id: "t::elsewhere", origin: "agent" });
  expect(elsewhere?.["parent"]).toBeUndefined();
});

test("a handler that outlives its connection keeps the agent's mark on the next one, where nobody knows its call", async () => {
  const { peer, clock, iii } = setUp();
  const goOn = Promise.withResolvers<void>();
  iii.registerFunction("t::tool", async () => {
    await goOn.promise;
    void iii.trigger("approval::resolve").catch(() => undefined);
  });
  await settle();
  const context = { caller: "c", origin: "agent", deadline_ms: null, depth: 0 };
  peer.last.send({ type: "invokefunction", invocation_id: "1", function_id: "t::tool", context });
  await settle();
  peer.last.drop();
  await clock.advance(5_000);
  goOn.resolve();
  await settle();
  expect(peer.connections).toHaveLength(2);
  expect(peer.last.of("invokefunction")).toMatchObject([{ function_id: "approval::resolve", origin: "agent" }]);
});

test("cancel reaches the handler's signal; the deadline does too; the answer after a loss is dropped", async () => {
  const { peer, clock, iii } = setUp();
  const reasons: string[] = [];
  iii.registerFunction("t::wait", (_input, call) => {
    return new Promise((resolve) => {
      call.signal.addEventListener("abort", () => {
        reasons.push((call.signal.reason as BusError).message);
        resolve("stopped");
      });
    });
  });
  await settle();
  const context = { caller: "c", origin: "worker", deadline_ms: clock.now() + 500, depth: 0 };
  peer.last.send({ type: "invokefunction", invocation_id: "1", function_id: "t::wait" });
  peer.last.send({ type: "invokefunction", invocation_id: "2", function_id: "t::wait", context });
  peer.last.send({ type: "cancel", invocation_id: "1" });
  await clock.advance(500);
  expect(peer.last.of("invocationresult").map((frame) => frame["invocation_id"])).toEqual(["1", "2"]);
  peer.last.send({ type: "invokefunction", invocation_id: "3", function_id: "t::wait" });
  peer.last.drop();
  await clock.advance(1_300);
  expect(peer.last.of("invocationresult")).toEqual([]);
  expect(reasons).toEqual(["the caller cancelled the call", "the call's deadline has passed", "the connection was lost"]);
});

test("close lets running handlers answer first", async () => {
  const { peer, iii } = setUp();
  const release = Promise.withResolvers<string>();
  iii.registerFunction("t::f", () => release.promise);
  await settle();
  peer.last.send({ type: "invokefunction", invocation_id: "1", function_id: "t::f" });
  const closing = iii.close();
  await settle();
  expect(peer.last.of("unregisterfunction")).toHaveLength(1);
  expect(peer.last.closed).toBeUndefined();
  release.resolve("done");
  await closing;
  await settle();
  expect(peer.last.of("invocationresult")).toMatchObject([{ result: "done" }]);
  expect(peer.last.closed).toMatchObject({ code: 1000 });
});

test("a client that is closing takes no calls on the connection that follows a loss", async () => {
  const { peer, clock, iii } = setUp();
  const release = Promise.withResolvers<string>();
  iii.registerFunction("t::f", () => release.promise);
  iii.registerTrigger({ type: "state", function_id: "t::f" });
  await settle();
  peer.last.send({ type: "invokefunction", invocation_id: "1", function_id: "t::f" });
  const closing = iii.close();
  await settle();
  peer.last.drop();
  await clock.advance(5_000);
  expect(peer.connections).toHaveLength(2);
  expect(peer.last.frames).toEqual([]);
  release.resolve("done");
  await closing;
});

test("what the engine would end the connection for is refused here: a call to its caller, an answer as an error", async () => {
  const { peer, iii } = setUp();
  iii.registerFunction("t::big", () => "é".repeat(600));
  await settle();
  peer.last.send({ type: "workerregistered", worker_id: "w", max_frame_bytes: 1_024 });
  await settle();
  const sent = iii.trigger("t::x", "é".repeat(600));
  await expect(sent).rejects.toMatchObject({ code: "payload_too_large", details: { limit: 1_024 } });
  expect(peer.last.of("invokefunction")).toEqual([]);
  peer.last.send({ type: "invokefunction", invocation_id: "1", function_id: "t::big" });
  await settle();
  expect(peer.last.of("invocationresult")).toMatchObject([{ invocation_id: "1", error: { code: "payload_too_large" } }]);
  void iii.trigger("t::x", "x".repeat(600)).catch(() => undefined);
  await settle();
  expect(peer.last.of("invokefunction")).toHaveLength(1);
});
