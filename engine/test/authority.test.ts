// Who may do what, on the real engine: one table of who asks, what is asked for, and what comes of it.
import { testBus } from "@iii/engine/testing";
import type { Client } from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";
import { describe, expect, test } from "vitest";

type Bus = Awaited<ReturnType<typeof testBus>>;

/** Who asks. `as` undefined: the engine knows the name and nothing else. */
const WHO: Readonly<Record<string, { as: Principal; origin?: string }>> = {
  "page with key": { as: { kind: "operator", name: "page" }, origin: "http://127.0.0.1" },
  "page without key": { as: { kind: "none", name: "" }, origin: "http://127.0.0.1" },
  "person's command line": { as: { kind: "operator", name: "operator" } },
  "unproven client": { as: { kind: "none", name: "" } },
  "proven tool": { as: { kind: "entry", name: "tool" } },
  "gate's entry": { as: { kind: "entry", name: "gate" } },
  "orchestrator's entry": { as: { kind: "entry", name: "orchestrator" } },
};
const ENTRIES = {
  tool: { provides: ["tool::*"], calls: [] },
  gate: { provides: ["approval::*"], calls: [] },
  orchestrator: { provides: ["run::*", "turn::*"], calls: ["policy::check_permissions"] },
};

async function bus(): Promise<Bus> {
  const made = await testBus([], { config: { queues: { work: {} } } });
  for (const [name, rights] of Object.entries(ENTRIES)) made.entries.set(name, rights);
  const server = await made.connect("server");
  for (const id of ["approval::resolve", "run::start", "policy::check_permissions", "free::fn"]) server.registerFunction(id, () => "ran");
  await made.settle();
  return made;
}

const code = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "ok",
    (thrown: { code: string }) => thrown.code,
  );

async function claims(made: Bus, client: Client, id: string): Promise<string> {
  client.registerFunction(id, () => "claimed");
  await made.settle();
  return (await made.call(id, {})) === "claimed" ? "ok" : "FORBIDDEN";
}

async function binds(client: Client, function_id: string): Promise<string> {
  return code(client.trigger("engine::register_trigger", { trigger_type: "subscribe", function_id, config: { topic: "t" } }));
}

const DO: Readonly<Record<string, (made: Bus, client: Client) => Promise<string>>> = {
  "register approval::resolve": (made, client) => claims(made, client, "approval::resolve"),
  "register an id of its own": (made, client) => claims(made, client, "own::fn"),
  "call approval::resolve": (_, client) => code(client.trigger("approval::resolve", {})),
  "call policy::check_permissions": (_, client) => code(client.trigger("policy::check_permissions", {})),
  "call run::start": (_, client) => code(client.trigger("run::start", {})),
  "call free::fn": (_, client) => code(client.trigger("free::fn", {})),
  "read scope session": (_, client) => code(client.trigger("state::get", { scope: "session", key: "k" })),
  "write scope approvals": (_, client) => code(client.trigger("state::set", { scope: "approvals", key: "k", value: 1 })),
  "write scope session": (_, client) => code(client.trigger("state::transact", { writes: [{ scope: "session", key: "k", value: 1 }] })),
  "write stream agent::events": (_, client) =>
    code(client.trigger("stream::set", { stream_name: "agent::events", group_id: "g", item_id: "i", data: 1 })),
  "write a scope of its own": (_, client) => code(client.trigger("state::set", { scope: "own", key: "k", value: 1 })),
  "bind approval::resolve": (_, client) => binds(client, "approval::resolve"),
  "bind free::fn": (_, client) => binds(client, "free::fn"),
  "bind hook::before_call": (_, client) =>
    code(client.trigger("engine::register_trigger", { trigger_type: "hook::before_call", function_id: "free::fn", config: {} })),
  "enqueue approval::resolve": (_, client) => code(client.trigger("approval::resolve", {}, { action: { type: "enqueue", queue: "work" } })),
  "enqueue a write of approvals": (_, client) =>
    code(
      client.trigger("engine::queue::enqueue", {
        queue: "work",
        function_id: "state::set",
        data: { scope: "approvals", key: "k", value: 1 },
      }),
    ),
  "enqueue free::fn": (_, client) => code(client.trigger("free::fn", {}, { action: { type: "enqueue", queue: "work" } })),
  "enqueue on turn-step": (_, client) =>
    code(client.trigger("engine::queue::enqueue", { queue: "turn-step", function_id: "free::fn", data: { session_id: "s" } })),
};

const NO = "FORBIDDEN";
const OPEN = ["register an id of its own", "call run::start", "call free::fn", "read scope session", "write a scope of its own"];
const OPEN_LATER = ["bind free::fn", "enqueue free::fn"];
/** What each may do; everything else in the table is refused. */
const MAY: Readonly<Record<string, readonly string[]>> = {
  "page with key": Object.keys(DO).filter((what) => what !== "register approval::resolve"),
  "page without key": [...OPEN, ...OPEN_LATER],
  "person's command line": Object.keys(DO).filter((what) => what !== "register approval::resolve"),
  "unproven client": [...OPEN, ...OPEN_LATER],
  "proven tool": [...OPEN, ...OPEN_LATER],
  "gate's entry": [
    ...OPEN,
    ...OPEN_LATER,
    "register approval::resolve",
    "call approval::resolve",
    "write scope approvals",
    "bind approval::resolve",
    "enqueue approval::resolve",
    "enqueue a write of approvals",
  ],
  "orchestrator's entry": [
    ...OPEN,
    ...OPEN_LATER,
    "call policy::check_permissions",
    "write scope approvals",
    "write scope session",
    "write stream agent::events",
    "enqueue a write of approvals",
    "enqueue on turn-step",
  ],
};

describe.each(Object.keys(WHO))("K7.2 %s", (who) => {
  test.each(Object.keys(DO))(`${who}: %s`, async (what) => {
    await using made = await bus();
    const { as, origin } = WHO[who] ?? { as: { kind: "none", name: "" } };
    const client = await made.connect(who, { as, ...(origin === undefined ? {} : { origin }) });
    expect(await DO[what]?.(made, client)).toBe(MAY[who]?.includes(what) ? "ok" : NO);
  });
});

/** A tool whose handler says when it runs, and what its connections may do then. */
async function tool(made: Bus) {
  const client = await made.connect("tool", { as: { kind: "entry", name: "tool" } });
  const release = Promise.withResolvers<string>();
  client.registerFunction("tool::run", () => release.promise);
  await made.settle();
  const orchestrator = await made.connect("o", { as: { kind: "entry", name: "orchestrator" } });
  const answer = orchestrator.trigger("tool::run", {}, { origin: "agent", session_id: "s1" });
  await made.settle();
  answer.catch(() => undefined); // ends with the bus where the test leaves it running
  return { client, release, answer };
}

const AGENT_MAY = ["register an id of its own", "call free::fn", "write a scope of its own", "bind free::fn", "enqueue free::fn"];

describe.each(["in a call", "after its answer", "on a second socket", "after a reconnect"])("K7.1 a tool %s", (when) => {
  test.each(Object.keys(DO))(`${when}: %s`, async (what) => {
    await using made = await bus();
    const { client, release, answer } = await tool(made);
    if (when !== "in a call") {
      release.resolve("done");
      await answer;
    }
    if (when === "after a reconnect") await client.close({ drain_ms: 0 });
    const acts =
      when === "in a call" || when === "after its answer" ? client : await made.connect("t", { as: { kind: "entry", name: "tool" } });
    expect(await DO[what]?.(made, acts)).toBe(AGENT_MAY.includes(what) ? "ok" : NO);
  });

  test("the mark ends 60 s after the last call", async () => {
    await using made = await bus();
    const { client, release, answer } = await tool(made);
    release.resolve("done");
    await answer;
    await made.clock.advance(60_001);
    expect(await code(client.trigger("run::start", {}))).toBe("ok");
  });
});

test.each([
  ["a queue", { function_id: "engine::queue::enqueue", data: { queue: "work", function_id: "later::fn", data: {} } }],
  ["a state trigger", { function_id: "state::set", data: { scope: "own", key: "k", value: 1 } }],
  ["a stream", { function_id: "stream::set", data: { stream_name: "own", group_id: "g", item_id: "i", data: 1 } }],
  ["a topic", { function_id: "publish", data: { topic: "own", data: 1 } }],
])("K7.1 what a tool sets off through %s stays the agent's, with its session", async (_name, { function_id, data }) => {
  await using made = await bus();
  const contexts: unknown[] = [];
  const later = await made.connect("later");
  later.registerFunction("later::fn", (_payload, call) => void contexts.push(call.context));
  later.registerTrigger({ type: "state", function_id: "later::fn", config: { scope: "own" } });
  later.registerTrigger({ type: "stream", function_id: "later::fn", config: { stream_name: "own" } });
  later.registerTrigger({ type: "subscribe", function_id: "later::fn", config: { topic: "own" } });
  await made.settle();
  const { client } = await tool(made);
  await client.trigger(function_id, data);
  await made.settle();
  expect(contexts).toMatchObject([{ origin: "agent", session_id: "s1", principal: { kind: "entry", name: "tool" } }]);
});

test("K7.2 a binding to a built-in writes an owned scope only if who bound it and who set it off both may", async () => {
  await using made = await bus();
  const nobody = await made.connect("n", { as: { kind: "none", name: "" } });
  await nobody.trigger("engine::register_trigger", { trigger_type: "subscribe", function_id: "state::set", config: { topic: "t" } });
  await made.call("publish", { topic: "t", data: { scope: "approvals", key: "k", value: 1 } });
  await made.settle();
  expect(await made.call("state::list", { scope: "approvals" })).toEqual([]);
});

test("K7.3 a marked read that takes a session names its own; redrive and clear are closed", async () => {
  await using made = await bus();
  const { client } = await tool(made);
  const server = await made.connect("server");
  server.registerFunction("session-tree::messages", () => []);
  await made.settle();
  expect(await code(client.trigger("session-tree::messages", { session_id: "s1" }))).toBe("ok");
  for (const payload of [{ session_id: "s2" }, {}]) expect(await code(client.trigger("session-tree::messages", payload))).toBe(NO);
  for (const id of ["iii::queue::redrive", "engine::traces::clear", "engine::logs::clear", "session-tree::list", "state::list_groups"]) {
    expect(await code(client.trigger(id, {})), id).toBe(NO);
  }
});
