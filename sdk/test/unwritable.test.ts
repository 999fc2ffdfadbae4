// What cannot be written as a frame costs one call, and somebody is told.
import { BusError, connect, toWire } from "@iii/sdk";
import { ManualClock, ScriptedPeer, seededRandom, settle } from "@iii/sdk/testing";
import { expect, test } from "vitest";

function setUp() {
  const peer = new ScriptedPeer();
  return { peer, iii: connect({ dialer: peer, clock: new ManualClock(), random: seededRandom() }) };
}

function deep(levels: number): unknown {
  let value: unknown = "core";
  for (let level = 0; level < levels; level += 1) value = { value };
  return value;
}

const cycle: { self?: unknown } = {};
cycle.self = cycle;

const THROWN: readonly [string, unknown, RegExp][] = [
  ["details 20,000 levels deep", new BusError("io_error", "no", { details: deep(20_000) }), /^no \(its details are left out: /],
  ["details that are a cycle", new BusError("io_error", "no", { details: cycle }), /^no \(its details are left out: /],
  ["details with a bigint", new BusError("io_error", "no", { details: { n: 1n } }), /^no \(its details are left out: /],
  ["an object without a text", Object.create(null), /without a text/],
  ["a symbol", Symbol("why"), /Symbol\(why\)/],
  ["an error whose message is a getter that throws", Object.defineProperty(new Error(), "message", { get: oops }), /without a text/],
];

function oops(): string {
  throw new Error("no text");
}

test.each(THROWN)("K4.1 a handler that throws %s still answers its caller", async (_title, thrown, message) => {
  const { peer, iii } = setUp();
  iii.registerFunction("t::fail", () => {
    throw thrown;
  });
  iii.registerFunction("t::reject", () => Promise.reject(thrown));
  await settle();
  peer.last.send({ type: "invokefunction", invocation_id: "a", function_id: "t::fail", data: {} });
  peer.last.send({ type: "invokefunction", invocation_id: "b", function_id: "t::reject", data: {} });
  await settle();
  const answers = peer.last.of("invocationresult");
  expect(answers.map((frame) => frame["invocation_id"])).toEqual(["a", "b"]);
  for (const frame of answers) expect((frame["error"] as { message: string }).message).toMatch(message);
});

test.each([
  ["20,000 levels deep", deep(20_000), "payload_too_deep"],
  ["a cycle", cycle, "serialization_error"],
  ["a bigint", 1n, "serialization_error"],
])("K4.1 metadata that is %s refuses its own call at once", async (_title, metadata, code) => {
  const { iii } = setUp();
  await settle();
  await expect(iii.trigger("t::x", {}, { metadata })).rejects.toMatchObject({ code });
});

test("K4.1 a result 20,000 levels deep is an error of its call", async () => {
  const { peer, iii } = setUp();
  iii.registerFunction("t::deep", () => deep(20_000));
  await settle();
  peer.last.send({ type: "invokefunction", invocation_id: "a", function_id: "t::deep", data: {} });
  await settle();
  expect(peer.last.of("invocationresult")[0]).toMatchObject({ error: { code: "payload_too_deep" } });
});

test("K4.3 a schema that cannot be written is refused where it is registered, and breaks no later connection", async () => {
  const { peer, iii } = setUp();
  await settle();
  expect(() => iii.registerFunction("t::bad", () => 1, { request_format: deep(20_000) })).toThrow(/nests deeper than 512/);
  expect(() => iii.registerTrigger({ type: "state", function_id: "t::bad", config: cycle })).toThrow(/is not JSON/);
  iii.registerFunction("t::good", () => 1);
  await settle();
  expect(peer.last.of("registerfunction").map((frame) => frame["id"])).toEqual(["t::good"]);
  await iii.close();
});

test("details that can travel are left as they are", () => {
  expect(toWire(new BusError("io_error", "no", { details: { a: [1, { b: null }] } }))).toEqual({
    code: "io_error",
    message: "no",
    details: { a: [1, { b: null }] },
  });
});
