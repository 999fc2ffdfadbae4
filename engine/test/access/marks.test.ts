// The agent's mark: who carries it, for which session, and how long. On the real engine, with clients that say nothing themselves.
import { isClosedToAgents } from "@iii/engine/contract";
import { settle } from "@iii/sdk/testing";
import { expect, test } from "vitest";
import { MARK_GRACE_MS } from "../../src/core/marks.ts";
import { accessRig, as, outcome, toolOf } from "./rig.ts";

test.each([
  ["approval::resolve", true],
  ["approval::list_pending", false],
  ["policy::check_permissions", true],
  ["auth::get_token", true],
  ["run::start", true],
  ["turn::step", true],
  ["turn::get_state", false],
  ["budget::set", true],
  ["budget::usage", false],
  ["budget::forecast", false],
  ["worker::restart", true],
  ["worker::list", false],
  ["configuration::set", true],
  ["configuration::get", false],
  ["harness::trigger", true],
  ["session-tree::append", true],
  ["session-tree::an_id_of_tomorrow", true],
  ["ui::subscribe", true],
  ["xrun::start", false],
  ["shell::fs::read", false],
  ["state::get", false],
])("K7.7 %s is closed to agents: %s", (id, closed) => {
  expect(isClosedToAgents(id)).toBe(closed);
});

test("K7.1 the mark of a tool's connection lasts a minute after its last call, then it is a stranger again", async () => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: false });
  const start = () => outcome(tool.client.trigger("run::start", {}));
  expect(await start()).toBe("ok");
  await tool.run(async () => expect(await start()).toBe("FORBIDDEN"));
  await rig.bus.clock.advance(MARK_GRACE_MS - 1_000);
  expect(await start()).toBe("FORBIDDEN");
  await rig.bus.clock.advance(1_001);
  expect(await start()).toBe("ok");
});

test("K7.1 a lost socket takes no mark away: the client that comes back with its reattach token still acts for the agent", async () => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: false });
  const stuck = Promise.withResolvers<void>();
  const call = tool.run(() => stuck.promise).catch(() => undefined);
  await settle();
  await tool.reconnect();
  expect(await outcome(tool.client.trigger("run::start", {}))).toBe("FORBIDDEN");
  stuck.resolve();
  await call;
});

test("K7.1 a marked client takes no other mark by showing the token of a connection that has none", async () => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: false });
  const clean = await tool.second();
  await tool.run(async () => undefined);
  expect(await outcome(tool.client.trigger("run::start", {}))).toBe("FORBIDDEN");
  tool.say({ type: "reattach", previous_worker_id: clean.worker_id, reattach_token: tool.tokens.get(clean.worker_id ?? "") });
  await settle();
  expect(await outcome(tool.client.trigger("run::start", {}))).toBe("FORBIDDEN");
});

test("K8.1, K8.2 the mark's minute is counted on the monotonic clock", async () => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: true });
  await tool.run(async () => undefined);
  rig.bus.clock.step(5 * 3_600_000);
  expect(await outcome(tool.client.trigger("run::start", {}))).toBe("FORBIDDEN");
});

test("K5.4 a tool that runs on past its deadline keeps the mark for a while; one that never answers is rid of it then", async () => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: false });
  tool.client.registerFunction("tool::slow", () => new Promise(() => {}));
  await settle();
  const late = outcome(rig.control.trigger("tool::slow", {}, { origin: "agent", session_id: "s1", timeout_ms: 100 }));
  await settle();
  await rig.bus.clock.advance(25_000);
  expect(await late).toBe("TIMEOUT");
  expect(await outcome(tool.client.trigger("run::start", {}))).toBe("FORBIDDEN");
  await rig.bus.clock.advance(10_000 + MARK_GRACE_MS - 15_000);
  expect(await outcome(tool.client.trigger("run::start", {}))).toBe("FORBIDDEN");
  await rig.bus.clock.advance(20_000);
  expect(await outcome(tool.client.trigger("run::start", {}))).toBe("ok");
});

test("a call under an unmarked parent does not inherit from its neighbours; an invented parent gives nothing", async () => {
  await using rig = await accessRig();
  const worker = await as(rig, "both", "nobody");
  const stuck = Promise.withResolvers<void>();
  worker.registerFunction("both::wait", () => stuck.promise);
  worker.registerFunction("both::start", () => outcome(worker.trigger("run::start", {})));
  await settle();
  const waiting = rig.control.trigger("both::wait", {}, { origin: "agent", session_id: "s1" });
  await settle();
  expect(await rig.control.trigger("both::start", {})).toBe("ok");
  expect(await rig.control.trigger("both::start", {}, { origin: "agent", session_id: "s1" })).toBe("FORBIDDEN");
  stuck.resolve();
  await waiting;
});

test("a tool that runs calls of several sessions reads none of them", async () => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: true });
  const read = (session_id: string) => outcome(tool.client.trigger("session-tree::messages", { session_id }));
  await tool.run(async () => expect(await read("s1")).toBe("ok"), "s1");
  await tool.run(async () => {
    expect(await read("s1")).toBe("FORBIDDEN");
    expect(await read("s2")).toBe("FORBIDDEN");
  }, "s2");
});

test("K7.3 a tool reads whole results under its own session's keys, and no other owned row", async () => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: true });
  const get = (scope: string, key: string) => outcome(tool.client.trigger("state::get", { scope, key }));
  await tool.run(async () => {
    expect(await get("results", "s1/c1")).toBe("ok");
    expect(await get("results", "s10/c1")).toBe("FORBIDDEN");
    expect(await get("results", "s2/c1")).toBe("FORBIDDEN");
    expect(await get("session", "s1/turn_state")).toBe("FORBIDDEN");
    expect(await outcome(tool.client.trigger("state::list", { scope: "results" }))).toBe("FORBIDDEN");
    const checks = [{ scope: "approvals", key: "s1/c1", rev: 0 }];
    expect(await outcome(tool.client.trigger("state::transact", { checks }))).toBe("FORBIDDEN");
  });
});

test("a control-plane worker's own calls do not take the mark, and the worker that runs the agent sets it by naming the session", async () => {
  await using rig = await accessRig();
  const tree = await as(rig, "tree", { provides: ["session-tree::*"], calls: [] });
  tree.registerFunction("session-tree::messages", () => outcome(tree.trigger("state::list", { scope: "session_tree:s1" })));
  await settle();
  const tool = await toolOf(rig, { proven: true });
  await tool.run(async () => expect(await tool.client.trigger("session-tree::messages", { session_id: "s1" })).toBe("ok"));
  const read = (options: object) => outcome(tree.trigger("state::list", { scope: "session" }, options));
  expect(await read({ origin: "agent" })).toBe("ok");
  expect(await read({ origin: "agent", session_id: "s1" })).toBe("FORBIDDEN");
});

test("nothing that a tool says raises its rights: the session of its caller's mark wins over one that it names", async () => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: true });
  await tool.run(async () => {
    const options = { origin: "agent", session_id: "s2" } as const;
    expect(await outcome(tool.client.trigger("session-tree::messages", { session_id: "s2" }, options))).toBe("FORBIDDEN");
  });
});

test("raw writes are refused to the agent itself and allowed to its tools", async () => {
  await using rig = await accessRig();
  const writes: [string, object][] = [
    ["state::set", { scope: "notes", key: "k", value: 1 }],
    ["state::update", { scope: "notes", key: "k", ops: [] }],
    ["state::delete", { scope: "notes", key: "k" }],
    ["state::transact", {}],
    ["stream::set", { stream_name: "n", group_id: "g", item_id: "i", data: {} }],
    ["stream::send", { stream_name: "n", group_id: "g", type: "t", data: {} }],
    ["publish", { topic: "t", data: 1 }],
    ["iii::durable::publish", { topic: "t", data: 1 }],
    ["engine::workers::register", { name: "x" }],
  ];
  const tool = await toolOf(rig, { proven: true });
  for (const [id, payload] of writes) {
    expect(await outcome(rig.control.trigger(id, payload, { origin: "agent", session_id: "s1" })), id).toBe("FORBIDDEN");
    await tool.run(async () => expect(await outcome(tool.client.trigger(id, payload)), id).toBe("ok"));
  }
});

test.each([
  ["a condition", { trigger_type: "state", config: { scope: "notes", condition_function_id: "approval::resolve" } }],
  ["middleware", { trigger_type: "http", config: { api_path: "/x", middleware_function_ids: ["own::fn", "approval::resolve"] } }],
  ["every scope", { trigger_type: "state", config: {} }],
  ["a durable consumer", { trigger_type: "state", config: { scope: "notes", durable: "turn-orchestrator" } }],
  ["a stream of others", { trigger_type: "stream", config: { stream_name: "agent::events" } }],
  ["a raw write for later", { trigger_type: "subscribe", function_id: "state::set", config: { topic: "x" } }],
])("a tool binds no trigger with %s, by frame or by call", async (_title, wanted) => {
  await using rig = await accessRig();
  const tool = await toolOf(rig, { proven: true });
  await tool.run(async () => {
    const spec = { function_id: "own::fn", ...wanted };
    expect(await outcome(tool.client.trigger("engine::register_trigger", spec))).toBe("FORBIDDEN");
    tool.client.registerTrigger({ type: spec.trigger_type, function_id: spec.function_id, config: spec.config });
    await settle();
    expect([...rig.bus.engine.host.registry.bindings()].map(({ binding }) => binding.worker_id)).not.toContain(tool.client.worker_id);
  });
});

test("a binding is done in the name of who made it: a stranger's topic writes no scope of others", async () => {
  await using rig = await accessRig();
  const stranger = await as(rig, "stranger", "nobody");
  await stranger.trigger("engine::register_trigger", { trigger_type: "subscribe", function_id: "state::set", config: { topic: "x" } });
  const value = { scope: "approvals", key: "s1/c1", value: { status: "decided" } };
  await rig.control.trigger("publish", { topic: "x", data: value });
  await rig.bus.settle();
  expect((await rig.control.trigger<unknown>("state::get", { scope: "approvals", key: "s1/c1" })) ?? null).toBeNull();
  await rig.control.trigger("publish", { topic: "x", data: { scope: "notes", key: "k", value: 1 } });
  await rig.bus.settle();
  expect(await rig.control.trigger("state::get", { scope: "notes", key: "k" })).toBe(1);
});

test("run::spawn is reached by its own worker's dispatch for an agent, and never nested", async () => {
  await using rig = await accessRig();
  const agent = { origin: "agent", session_id: "s1" } as const;
  expect(await outcome(rig.control.trigger("run::spawn", {}, agent))).toBe("ok");
  expect(await outcome(rig.control.trigger("run::spawn", {}))).toBe("FORBIDDEN");
  const tool = await toolOf(rig, { proven: true });
  await tool.run(async () => expect(await outcome(tool.client.trigger("run::spawn", {}, agent))).toBe("FORBIDDEN"));
  const operator = await as(rig, "iii", "operator");
  expect(await outcome(operator.trigger("run::spawn", {}, agent))).toBe("FORBIDDEN");
});

test("the executor is told who calls, for whom, and for which session; work that runs later keeps that", async () => {
  await using rig = await accessRig();
  const seen: unknown[] = [];
  const worker = await as(rig, "see", {});
  worker.registerFunction(
    "see::it",
    (_input, { context }) => void seen.push({ principal: context?.principal, origin: context?.origin, session: context?.session_id }),
  );
  await settle();
  const person = await as(rig, "anna", "operator");
  await person.trigger("see::it", {});
  await person.trigger("see::it", {}, { action: { type: "enqueue", queue: "own" } });
  await rig.bus.settle();
  await rig.control.trigger("see::it", {}, { origin: "agent", session_id: "s1" });
  expect(seen).toEqual([
    { principal: { kind: "operator", name: "anna" }, origin: "worker", session: undefined },
    { principal: { kind: "operator", name: "anna" }, origin: "worker", session: undefined },
    { principal: { kind: "entry", name: "control" }, origin: "agent", session: "s1" },
  ]);
});

test("P5.1 rows that config.yaml adds take rights away, and give none", async () => {
  const add = { decides: ["own::*"], scopes: [{ name: "notes", owner: ["own::fn"] }] };
  await using rig = await accessRig({ add });
  rig.control.registerFunction("own::fn", () => 1);
  const stranger = await as(rig, "stranger", "nobody");
  expect(await outcome(stranger.trigger("own::fn"))).toBe("FORBIDDEN");
  expect(await outcome(stranger.trigger("approval::resolve"))).toBe("FORBIDDEN");
  expect(await outcome(stranger.trigger("state::set", { scope: "notes", key: "k", value: 1 }))).toBe("FORBIDDEN");
  expect(await outcome(rig.control.trigger("state::set", { scope: "notes", key: "k", value: 1 }))).toBe("ok");
});
