// Rights that act later, and what a tool sets off: in whose name it is done. The table of who may do what is `access/table.test.ts`.
import { testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";

type Bus = Awaited<ReturnType<typeof testBus>>;

const NO = "FORBIDDEN";

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
