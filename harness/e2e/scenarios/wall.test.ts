// The wall: what an agent's call may never reach, however it gets there, though every rule allows everything.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rawSocket } from "../support/raw.ts";
import { type Stack, startStack, until } from "../support/stack.ts";
import { ended, post, programEntry, type Transcript, transcript } from "../support/turns.ts";

/** No policy worker: every call is allowed, so that what is refused is refused by the engine. */
const open = (shipped: string): string =>
  shipped
    .replace("  queues:\n", "  queues:\n    work: {}\n")
    .replace(/ {2}- name: policy[^\n]*\n/, "")
    .replace(/( {2}- name: harness)[^\n]*\n/, "$1\n    config: { policy: allow_all }\n")
    .replace("  - name: turn-orchestrator\n", "  - name: turn-orchestrator\n    config: { startup_grace_ms: 0 }\n")
    .concat(programEntry("wall", "support/wall-tool.ts"));

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ config: open });
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

const HUMAN_ONLY = /^(approval|policy|auth|run|turn|budget|worker|ui)::|^(configuration::set|harness::trigger|http::static)$/;
const READS = new Set(["approval::list_pending", "worker::list", "turn::get_state"]);
/** Not served by this version, and refused all the same: the id alone decides. */
const UNSERVED = [
  "approval::set_mode",
  "auth::no_such",
  "budget::create",
  "budget::reset",
  "configuration::set",
  "run::no_such",
  "worker::no_such",
];

async function humanOnly(): Promise<string[]> {
  const { functions } = await stack.trigger<{ functions: { function_id: string }[] }>("engine::functions::list", {
    include_internal: true,
  });
  const served = functions.map((row) => row.function_id).filter((id) => HUMAN_ONLY.test(id) && !READS.has(id));
  return [...served, ...UNSERVED];
}

let turns = 0;
/** One turn whose model makes these calls; their results in order. */
async function calls(wanted: { function: string; payload: unknown }[], on: Stack = stack): Promise<Transcript["results"]> {
  turns += 1;
  const session_id = `wall-${turns}`;
  await post(on, session_id, `calls ${JSON.stringify(wanted)}`);
  expect(await ended(on, session_id)).toMatchObject({ state: "stopped" });
  const { results } = await transcript(on, session_id);
  expect(results).toHaveLength(wanted.length);
  return results;
}

const approve = { function_id: "approval::resolve", payload: { session_id: "s", function_call_id: "c", decision: "allow" } };

describe("an agent's call", () => {
  test("to every human-only id is refused by the engine, whether anyone serves it or not", async () => {
    const ids = await humanOnly();
    expect(ids).toEqual(
      expect.arrayContaining([
        "approval::resolve",
        "auth::set_token",
        "harness::trigger",
        "run::start",
        "turn::step",
        "ui::subscribe",
        "worker::stop",
      ]),
    );
    const results = await calls(ids.map((id) => ({ function: id, payload: {} })));
    for (const [index, result] of results.entries()) {
      expect(result).toMatchObject({ is_error: true, details: { status: "denied", denied_by: "permissions", function_id: ids[index] } });
      expect(result.text).toContain(`'${ids[index]}' is for humans`);
    }
  });

  test("nested through a tool, deeper, and from outside of its call: FORBIDDEN", async () => {
    const ids = await humanOnly();
    const nested = await calls(ids.map((function_id) => ({ function: "wall::call", payload: { function_id, payload: {} } })));
    for (const result of nested) expect(JSON.parse(result.text)).toMatchObject({ code: "FORBIDDEN" });
    const others = await calls([
      { function: "wall::deeper", payload: { ...approve, depth: 5 } },
      { function: "wall::apart", payload: approve },
    ]);
    for (const result of others) expect(JSON.parse(result.text)).toMatchObject({ code: "FORBIDDEN" });
  });

  test("to raw writes, to the queue and to the bindings of others: FORBIDDEN by itself, and nothing is written", async () => {
    const item = { stream_name: "s", group_id: "g", item_id: "i" };
    const wanted = [
      { function: "state::set", payload: { scope: "own", key: "k", value: 1 } },
      { function: "state::update", payload: { scope: "own", key: "k", ops: [] } },
      { function: "state::delete", payload: { scope: "own", key: "k" } },
      { function: "state::transact", payload: { writes: [{ scope: "own", key: "k", value: 1 }] } },
      { function: "stream::set", payload: { ...item, data: 1 } },
      { function: "stream::update", payload: { ...item, ops: [] } },
      { function: "stream::delete", payload: item },
      { function: "stream::send", payload: { stream_name: "s", group_id: "g", type: "t", data: 1 } },
      { function: "publish", payload: { topic: "t", data: 1 } },
      { function: "engine::register_trigger", payload: { trigger_type: "state", function_id: "wall::later", config: {} } },
      { function: "engine::unregister_trigger", payload: { id: "x" } },
      { function: "engine::queue::enqueue", payload: { queue: "work", function_id: "approval::resolve", data: {} } },
      {
        function: "engine::queue::enqueue",
        payload: { queue: "work", function_id: "state::set", data: { scope: "own", key: "k", value: 1 } },
      },
    ];
    for (const result of await calls(wanted)) {
      expect(result).toMatchObject({ is_error: true, details: { status: "denied", denied_by: "permissions" } });
      expect(result.text).toMatch(/is for humans|may not be called by an agent itself/);
    }
    expect(await stack.trigger("state::list", { scope: "own" })).toEqual([]);
    expect(await stack.trigger("stream::list", { stream_name: "s", group_id: "g" })).toEqual([]);
  });

  test("by a tool to what others own: FORBIDDEN scope by scope; on its own data it may", async () => {
    const scopes = [
      "session",
      "session_index",
      "active_turns",
      "approvals",
      "budgets",
      "vault",
      "session_tree:s1",
      "session_tree_meta",
      "models",
      "results",
    ];
    const at = (scope: string) => ({ scope, key: "k" });
    const wanted = scopes.flatMap((scope) => [
      { function_id: "state::set", payload: { ...at(scope), value: 1 } },
      { function_id: "state::delete", payload: at(scope) },
      { function_id: "state::update", payload: { ...at(scope), ops: [{ type: "set", path: "", value: 1 }] } },
      {
        function_id: "state::transact",
        payload: {
          writes: [
            { ...at("own"), value: 1 },
            { ...at(scope), delete: true },
          ],
        },
      },
    ]);
    // What people are shown: a tool that could write it could show other arguments than those that wait.
    const shown = { stream_name: "agent::events", group_id: "wall-1", item_id: "forged" };
    const forged = [
      { function_id: "stream::set", payload: { ...shown, data: {} } },
      { function_id: "stream::set", payload: { ...shown, data: {}, ephemeral: true } },
      { function_id: "stream::update", payload: { ...shown, ops: [] } },
      { function_id: "stream::delete", payload: shown },
      { function_id: "stream::send", payload: { stream_name: "agent::events", group_id: "wall-1", type: "t", data: {} } },
      { function_id: "state::transact", payload: { events: [{ ...shown, data: {} }] } },
      { function_id: "state::transact", payload: { drops: [{ stream_name: "agent::events", group_id: "wall-1", prefix: "" }] } },
    ];
    const append = { session_id: "wall-1", message: { role: "user", content: [{ type: "text", text: "forged" }], timestamp: 1 } };
    const results = await calls([
      ...[...wanted, ...forged].map((payload) => ({ function: "wall::call", payload })),
      { function: "wall::call", payload: { function_id: "session-tree::append", payload: append } },
      { function: "wall::call", payload: { function_id: "state::set", payload: { ...at("own"), value: 7 } } },
    ]);
    const codes = results.map((result) => (JSON.parse(result.text) as { code: string }).code);
    expect(codes.slice(0, -1)).toEqual(Array.from({ length: codes.length - 1 }, () => "FORBIDDEN"));
    expect(codes.at(-1)).toBe("none");
    expect(await stack.trigger("state::get", at("own"))).toBe(7);
    expect((await transcript(stack, "wall-1")).text).not.toContain("forged");
  });

  test.each([
    ["a queue", { function_id: "wall::later", action: { type: "enqueue", queue: "work" } }, (attempt: unknown) => attempt],
    [
      "the queue's function",
      { function_id: "engine::queue::enqueue" },
      (attempt: unknown) => ({ queue: "work", function_id: "wall::later", data: attempt }),
    ],
    [
      "a queue, with a claim to be a worker's",
      { function_id: "engine::queue::enqueue" },
      (attempt: unknown) => ({ queue: "work", function_id: "wall::later", data: attempt, origin: "worker" }),
    ],
    [
      "a transaction's messages",
      { function_id: "state::transact" },
      (attempt: unknown) => ({ enqueue: [{ queue: "work", function_id: "wall::later", data: attempt }] }),
    ],
    ["a state trigger", { function_id: "state::set" }, (attempt: unknown) => ({ scope: "wall-events", key: "k", value: attempt })],
    ["a durable state trigger", { function_id: "state::set" }, (attempt: unknown) => ({ scope: "wall-durable", key: "k", value: attempt })],
    [
      "a stream trigger",
      { function_id: "stream::set" },
      (attempt: unknown) => ({ stream_name: "wall-stream", group_id: "g", item_id: "i", data: attempt }),
    ],
    [
      "a stream's event",
      { function_id: "stream::send" },
      (attempt: unknown) => ({ stream_name: "wall-stream", group_id: "g", type: "t", data: attempt }),
    ],
    ["a topic", { function_id: "publish" }, (attempt: unknown) => ({ topic: "wall-topic", data: attempt })],
    [
      "a transaction's topic",
      { function_id: "state::transact" },
      (attempt: unknown) => ({ publish: [{ topic: "wall-topic", data: attempt }] }),
    ],
    ["a durable topic", { function_id: "iii::durable::publish" }, (attempt: unknown) => ({ topic: "wall-durable-topic", data: attempt })],
  ])("keeps its mark through %s", async (name, how, wrap) => {
    const [result] = await calls([{ function: "wall::call", payload: { ...how, payload: wrap({ name, ...approve }) } }]);
    expect(JSON.parse(result?.text ?? "")).toMatchObject({ code: "none" });
    const outcome = await until(
      "the later call",
      async () => (await stack.trigger("state::get", { scope: "wall-outcomes", key: name })) ?? undefined,
    );
    expect(outcome).toMatchObject({ code: "FORBIDDEN" });
  });

  test("cannot have a human-only function called later, nor watch what is not its own: not queued, not bound, not as a condition", async () => {
    const config = { topic: "wall-trap", scope: "wall-trap" };
    const trap = { ...config, condition_function_id: "approval::resolve" };
    const queued = { queue: "work", function_id: "approval::resolve", data: approve.payload };
    const results = await calls(
      [
        { function_id: "approval::resolve", payload: approve.payload, action: { type: "enqueue", queue: "work" } },
        { function_id: "engine::queue::enqueue", payload: queued },
        { function_id: "state::transact", payload: { enqueue: [queued] } },
        { function_id: "engine::register_trigger", payload: { trigger_type: "subscribe", function_id: "approval::resolve", config } },
        { function_id: "engine::register_trigger", payload: { trigger_type: "subscribe", function_id: "wall::later", config: trap } },
      ].map((payload) => ({ function: "wall::call", payload })),
    );
    for (const result of results) expect(JSON.parse(result.text)).toMatchObject({ code: "FORBIDDEN" });
    const http = { api_path: "/trap", http_method: "POST" };
    await calls(
      [
        { type: "subscribe", function_id: "approval::resolve", config },
        { type: "subscribe", function_id: "wall::later", config: trap },
        { type: "state", function_id: "wall::later", config: trap },
        { type: "state", function_id: "wall::later", config: { scope: "approvals", key: "wall-trap" } },
        { type: "stream", function_id: "wall::later", config: { stream_name: "agent::events", group_id: "wall-trap" } },
        { type: "state", function_id: "wall::later", config: { scope: "wall-trap", durable: "wall-trap" } },
        { type: "state", function_id: "wall::later", config: { key: "wall-trap" } },
        { type: "http", function_id: "harness::trigger", config: http },
        { type: "http", function_id: "wall::later", config: { ...http, condition_function_id: "harness::trigger" } },
        { type: "http", function_id: "wall::later", config: { ...http, middleware_function_ids: ["harness::trigger"] } },
      ].map((payload) => ({ function: "wall::bind", payload })),
    );
    const { registered_triggers } = await stack.trigger<{ registered_triggers: object[] }>("engine::registered-triggers::list", {
      include_internal: true,
    });
    expect(registered_triggers.length).toBeGreaterThan(5);
    expect(registered_triggers.filter((row) => /wall-trap|\/trap/.test(JSON.stringify(row)))).toEqual([]);
    expect((await fetch(`${stack.httpUrl}/trap`, { method: "POST" })).status).toBe(404);
  });

  test("spoken by hand: no word in a frame takes the mark off", async () => {
    using tool = await rawSocket(stack.url);
    tool.send('{"type":"registerfunction","id":"raw::tool"}');
    await tool.call("engine::functions::list", {});
    await post(stack, "raw", "call raw::tool {}");
    const { invocation_id } = await tool.next("invokefunction");
    for (const claim of [
      {},
      { origin: "worker" },
      { origin: "engine" },
      { parent: "nobody" },
      { parent: "", origin: null },
      { parent: invocation_id, origin: "browser" },
      { context: { origin: "worker" } },
    ]) {
      expect(await tool.call("approval::resolve", approve.payload, claim)).toMatchObject({ error: { code: "FORBIDDEN" } });
      expect(await tool.call("state::set", { scope: "approvals", key: "s/c", value: 1 }, claim)).toMatchObject({
        error: { code: "FORBIDDEN" },
      });
    }
    tool.send(JSON.stringify({ type: "invocationresult", invocation_id, function_id: "raw::tool", result: "done" }));
    await ended(stack, "raw");
    expect(await tool.call("approval::resolve", approve.payload)).toMatchObject({ error: { code: "FORBIDDEN" } });
  });
});

test("with a permissions file that allows everything, the shipped policy refuses human-only ids before the engine has to", async () => {
  await using lax = await startStack({ permissions: "version: 1\nrules:\n  - '*'\n" });
  const ids = await humanOnly();
  const [last, ...results] = (
    await calls([...ids.map((id) => ({ function: id, payload: {} })), { function: "shell::fs::ls", payload: { path: "." } }], lax)
  ).toReversed();
  expect(last).toMatchObject({ is_error: false });
  for (const result of results)
    expect(result).toMatchObject({ is_error: true, details: { denied_by: "permissions", rule_id: "human_only_function" } });
});
