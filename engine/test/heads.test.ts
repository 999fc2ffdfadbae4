// What a frame's head carries is bounded where it enters: whoever waits is answered, nobody else notices, and the log is not flooded.
import { functionsList, publish, registeredTriggersList, registerTrigger, triggersList } from "@iii/engine/contract";
import { type TestBus, testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { notingLogger } from "./fixtures/noted.ts";
import { Peer } from "./fixtures/peer.ts";
import { probe } from "./storage/helpers.ts";

const deep = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const DEPTHS = [513, 600, 20_000, 500_000];
const long = (length: number): string => "x".repeat(length);

async function pair(bus: TestBus): Promise<{ worker: Peer; caller: Peer }> {
  const worker = new Peer(bus);
  worker.say({ type: "registerfunction", id: "odd::fn" });
  return { worker, caller: new Peer(bus) };
}

/** Everybody can still call, and see what is on the bus. */
async function unharmed(bus: TestBus): Promise<void> {
  expect((await bus.call(functionsList, { include_internal: true })).functions.length).toBeGreaterThan(10);
  expect((await bus.call(triggersList, {})).triggers.length).toBeGreaterThan(3);
  await bus.call(registeredTriggersList, {});
}

test.each(DEPTHS)("K4.1, P2.1 metadata of %d levels is an answer to its caller", async (levels) => {
  await using bus = await testBus();
  const { worker, caller } = await pair(bus);
  caller.say(`{"type":"invokefunction","invocation_id":"a","function_id":"odd::fn","metadata":${deep(levels)},"data":{}}`);
  expect(caller.last("invocationresult")).toMatchObject({ invocation_id: "a", error: { code: "payload_too_deep" } });
  expect(worker.last("invokefunction")).toBeUndefined();
  caller.say(`{"type":"invokefunction","invocation_id":"b","function_id":"odd::fn","metadata":${deep(512)},"data":{}}`);
  expect(worker.last("invokefunction")).toMatchObject({ metadata: JSON.parse(deep(512)) });
  await unharmed(bus);
});

test.each(DEPTHS)("K4.1, P2.1 details of %d levels do not keep an error from its caller", async (levels) => {
  await using bus = await testBus();
  const { worker, caller } = await pair(bus);
  caller.say({ type: "invokefunction", invocation_id: "a", function_id: "odd::fn", data: {} });
  const id = worker.last("invokefunction")?.["invocation_id"] as string;
  worker.say(
    `{"type":"invocationresult","invocation_id":"${id}","function_id":"odd::fn","error":{"code":"mine","message":"no","details":${deep(levels)}}}`,
  );
  expect(caller.last("invocationresult")).toMatchObject({
    error: { code: "mine", message: expect.stringContaining("no (the rest is left out") },
  });
  await unharmed(bus);
});

test.each([
  ["a text of 100,000", JSON.stringify({ message: long(100_000), code: "mine" })],
  ["details of 100,000", JSON.stringify({ message: "no", code: "mine", details: long(100_000) })],
  ["a stack of 100,000", JSON.stringify({ message: "no", code: "mine", stacktrace: long(100_000) })],
])("K4.5 an error with %s arrives shorter", async (_title, body) => {
  await using bus = await testBus();
  const { worker, caller } = await pair(bus);
  caller.say({ type: "invokefunction", invocation_id: "a", function_id: "odd::fn", data: {} });
  const id = worker.last("invokefunction")?.["invocation_id"] as string;
  worker.say(`{"type":"invocationresult","invocation_id":"${id}","function_id":"odd::fn","error":${body}}`);
  expect(caller.last("invocationresult")).toMatchObject({ error: { code: "mine" } });
  expect(JSON.stringify(caller.last("invocationresult")).length).toBeLessThan(20_000);
});

test.each([
  ["baggage of 8,193", `"baggage":"a=${long(8_191)}"`],
  ["metadata of 65,537", `"metadata":"${long(65_537)}"`],
  ["a trace context of 2,000", `"traceparent":"${long(2_000)}"`],
  ["a queue's name of 70,000", `"action":{"type":"enqueue","queue":"${long(70_000)}"}`],
])("K4.5 a call with %s characters is answered, and not made", async (_title, member) => {
  await using bus = await testBus();
  const { worker, caller } = await pair(bus);
  caller.say(`{"type":"invokefunction","invocation_id":"a","function_id":"odd::fn",${member},"data":{}}`);
  expect(caller.last("invocationresult")).toMatchObject({
    invocation_id: "a",
    error: { code: expect.stringMatching(/^(payload_too_large|id_invalid)$/) },
  });
  expect(worker.last("invokefunction")).toBeUndefined();
});

const NOT_REGISTERED = [
  ["request_format of 513 levels", `"request_format":${deep(513)}`],
  ["request_format of 20,000 levels", `"request_format":${deep(20_000)}`],
  ["response_format of 513 levels", `"response_format":${deep(513)}`],
  ["metadata of 513 levels", `"metadata":${deep(513)}`],
  ["a schema of 64 KB and more", `"request_format":{"d":"${long(65_536)}"}`],
  ["a description of 4,097", `"description":"${long(4_097)}"`],
] as const;

test.each(NOT_REGISTERED)("K4.3, K4.5 a function with %s is refused, and everybody's list is whole", async (_title, member) => {
  const log = notingLogger();
  await using bus = await testBus([], { log });
  const worker = new Peer(bus);
  worker.say(`{"type":"registerfunction","id":"odd::fn",${member}}`);
  worker.say(
    `{"type":"registertriggertype","id":"odd-type",${member.replace("request_format", "trigger_request_format").replace("response_format", "call_request_format").replace("metadata", "trigger_request_format")}}`,
  );
  const { functions } = await bus.call(functionsList, { prefix: "odd::" });
  expect(functions).toEqual([]);
  expect(log.warnings()).toMatchObject([expect.stringContaining("a frame of type 'registerfunction' was refused")]);
  await unharmed(bus);
});

test("K4.5 schemas of 64 KB and descriptions of 4 KB are taken", async () => {
  await using bus = await testBus();
  const worker = new Peer(bus);
  const schema = { d: long(65_536 - '{"d":""}'.length) };
  worker.say({ type: "registerfunction", id: "odd::fn", description: long(4_096), request_format: schema, response_format: schema });
  expect((await bus.call(functionsList, { prefix: "odd::" })).functions).toMatchObject([
    { function_id: "odd::fn", request_format: schema },
  ]);
});

test.each([
  ["an id of 257", long(257)],
  ["an id with a line break", "a\\nb"],
  ["an id that changes direction", "a\\u202eb"],
  ["an id with a NUL", "a\\u0000b"],
  ["an id of half a surrogate", "a\\ud800b"],
])("K4.5 a trigger with %s is refused with an answer", async (_title, name) => {
  await using bus = await testBus();
  const peer = new Peer(bus);
  peer.say(`{"type":"registertrigger","id":"${name}","trigger_type":"subscribe","function_id":"odd::fn","config":{"topic":"t"}}`);
  peer.say(`{"type":"registertrigger","id":"i","trigger_type":"${name}","function_id":"odd::fn","config":{}}`);
  peer.say(`{"type":"registertrigger","id":"j","trigger_type":"subscribe","function_id":"${name}","config":{"topic":"t"}}`);
  expect(peer.frames.filter(({ type }) => type === "triggerregistrationresult")).toMatchObject(
    Array.from({ length: 3 }, () => ({ error: { code: "id_invalid" } })),
  );
  expect((await bus.call(registeredTriggersList, {})).registered_triggers).toEqual([]);
});

test.each([
  ["513 levels", deep(513), "payload_too_deep"],
  ["20,000 levels", deep(20_000), "payload_too_deep"],
  ["70,000 characters", `"${long(70_000)}"`, "payload_too_large"],
])("K4.1 a trigger's config of %s is refused, as a frame and as a call", async (_title, config, code) => {
  await using bus = await testBus();
  const peer = new Peer(bus);
  peer.say(`{"type":"registertrigger","id":"a","trigger_type":"http","function_id":"odd::fn","config":${config}}`);
  expect(peer.last("triggerregistrationresult")).toMatchObject({ id: "a", error: { code } });
  const call = { trigger_type: "odd-type", function_id: "odd::fn", config: JSON.parse(config) as unknown };
  peer.say(
    `{"type":"invokefunction","invocation_id":"b","function_id":"${registerTrigger.id}","data":${JSON.stringify({ ...call, config: 0 }).replace('"config":0', `"config":${config}`)}}`,
  );
  await bus.settle();
  expect(peer.last("invocationresult")).toMatchObject({ invocation_id: "b", error: { code } });
  await unharmed(bus);
});

test("K4.6 refusals are noted once per connection and second, with what was left out", async () => {
  const log = notingLogger();
  await using bus = await testBus([], { log });
  const [one, other] = [new Peer(bus), new Peer(bus)];
  for (let n = 0; n < 1_000; n += 1) one.say({ type: "registerfunction", id: "with space" });
  other.say("nonsense");
  expect(log.warnings()).toHaveLength(2);
  await bus.clock.advance(1_001);
  one.say({ type: "registerfunction", id: "with space" });
  expect(log.warnings()).toHaveLength(3);
  expect(log.lines.at(-1)?.fields).toMatchObject({ more_before: 999 });
});

test("K4.2 a built-in's own call that cannot be written ends with an error, and leaves nobody waiting when the engine stops", async () => {
  const log = notingLogger();
  const seen = probe("odd::fn", [{ type: "subscribe", config: { topic: "t" } }]);
  const bus = await testBus([seen.worker], { log });
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  await expect(bus.engine.host.invoke({ function_id: "odd::fn", payload: cyclic })).rejects.toMatchObject({ code: "payload_too_deep" });
  await expect(bus.engine.host.invoke({ function_id: "odd::fn", payload: { n: 1n } })).rejects.toMatchObject({
    code: "serialization_error",
  });
  await expect(bus.engine.host.invoke({ function_id: "odd::fn", payload: {}, metadata: cyclic })).rejects.toMatchObject({
    code: "serialization_error",
  });
  await bus.call(publish, { topic: "t", data: 1 });
  await bus.settle();
  expect(seen.inputs()).toEqual([1]);
  // An unhandled rejection here would fail the run.
  await bus[Symbol.asyncDispose]();
});
