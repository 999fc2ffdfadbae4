// Who may do what: every kind of asker against every kind of deed, each cell stated and tried on the real engine.
import { settle } from "@iii/sdk/testing";
import { describe, expect, test } from "vitest";
import { accessRig, as, type Deed, outcome, PAGE, type Rig, toolOf } from "./rig.ts";

const NO = "FORBIDDEN";

/** Registers an id, and tells whether the engine routes it there. */
const claims =
  (id: string): Deed =>
  async (iii, { bus }) => {
    iii.registerFunction(id, () => ({}));
    await settle();
    return bus.engine.host.registry.function(id)?.worker_id === iii.worker_id ? "ok" : NO;
  };

const calls =
  (id: string, payload: unknown = {}): Deed =>
  (iii) =>
    outcome(iii.trigger(id, payload));

/** A binding answers only when it is refused. */
const binds =
  (function_id: string, config: object, type = "state"): Deed =>
  (iii) =>
    outcome(iii.trigger("engine::register_trigger", { trigger_type: type, function_id, config }));

const enqueues =
  (queue: string, function_id: string): Deed =>
  (iii) =>
    outcome(iii.trigger(function_id, {}, { action: { type: "enqueue", queue } }));

const DEEDS: Readonly<Record<string, Deed>> = {
  "register approval::resolve": claims("approval::resolve"),
  "register provider::named::stream": claims("provider::named::stream"),
  "register stream::set(agent::events)": claims("stream::set(agent::events)"),
  "register own::fn": claims("own::fn"),
  "call approval::resolve": calls("approval::resolve"),
  "call policy::check_permissions": calls("policy::check_permissions"),
  "call auth::status": calls("auth::status"),
  "call auth::get_token": calls("auth::get_token"),
  "call turn::step": calls("turn::step"),
  "call session-tree::append": calls("session-tree::append", { session_id: "s1" }),
  "call iii::queue::redrive": calls("iii::queue::redrive", { queue: "own" }),
  "call engine::traces::clear": calls("engine::traces::clear"),
  "call engine::logs::clear": calls("engine::logs::clear"),
  "call engine::operators::add": calls("engine::operators::add", { name: "x" }),
  "call run::start": calls("run::start"),
  "call run::spawn": calls("run::spawn"),
  "call ui::subscribe": calls("ui::subscribe"),
  "call models::list": calls("models::list"),
  "read its session": calls("session-tree::messages", { session_id: "s1" }),
  "read another session": calls("session-tree::messages", { session_id: "s2" }),
  "read all approvals": calls("approval::list_pending", {}),
  "read scope session": calls("state::list", { scope: "session" }),
  "read stream agent::events": calls("stream::list", { stream_name: "agent::events", group_id: "s1" }),
  "read scope notes": calls("state::get", { scope: "notes", key: "k" }),
  "write scope approvals": calls("state::set", { scope: "approvals", key: "s1/c1", value: 1 }),
  "write scope session by transact": calls("state::transact", { writes: [{ scope: "session", key: "k", value: 1 }] }),
  "write stream agent::events": calls("stream::set", { stream_name: "agent::events", group_id: "s1", item_id: "i", data: {} }),
  "send to stream agent::events": calls("stream::send", { stream_name: "agent::events", group_id: "s1", type: "t", data: {} }),
  "write stream by transact": calls("state::transact", {
    events: [{ stream_name: "agent::events", group_id: "s1", item_id: "i", data: {} }],
  }),
  "drop from a stream by transact": calls("state::transact", { drops: [{ stream_name: "agent::events", group_id: "s1", prefix: "" }] }),
  "publish to topic approvals": calls("publish", { topic: "approvals", data: 1 }),
  "write scope notes": calls("state::set", { scope: "notes", key: "k", value: 1 }),
  "bind approval::resolve": binds("approval::resolve", { scope: "notes" }),
  "bind a write for later": binds("state::set", { topic: "t" }, "subscribe"),
  "bind what a condition names": binds("own::other", { scope: "notes", condition_function_id: "turn::step" }),
  "bind hook::before_call": binds("own::other", {}, "hook::before_call"),
  "watch scope approvals": binds("own::other", { scope: "approvals" }),
  "watch scope notes": binds("own::other", { scope: "notes" }),
  "enqueue turn::step": enqueues("own", "turn::step"),
  "enqueue on turn-step": enqueues("turn-step", "own::other"),
  "enqueue by transact on turn-step": calls("state::transact", { enqueue: [{ queue: "turn-step", function_id: "own::other", data: {} }] }),
  "enqueue own::other": enqueues("own", "own::other"),
};

/** What each asker may do; a deed that is not named is refused. A `bind … for later` writes in the name of who bound it. */
const READS = [
  "read its session",
  "read another session",
  "read all approvals",
  "read scope session",
  "read stream agent::events",
  "read scope notes",
];
const OWN = ["register own::fn", "write scope notes", "watch scope notes", "enqueue own::other", "call models::list"];
const STRANGER = [...READS, ...OWN, "call run::start", "call ui::subscribe", "watch scope approvals", "bind a write for later"];
const DECIDES = [
  "call approval::resolve",
  "call policy::check_permissions",
  "call auth::status",
  "call turn::step",
  "call session-tree::append",
  "call iii::queue::redrive",
  "call engine::traces::clear",
  "call engine::logs::clear",
  "call engine::operators::add",
  "bind approval::resolve",
  "bind what a condition names",
  "bind hook::before_call",
  "enqueue turn::step",
];
const WRITES = [
  "write scope approvals",
  "write scope session by transact",
  "write stream agent::events",
  "send to stream agent::events",
  "write stream by transact",
  "drop from a stream by transact",
  "enqueue on turn-step",
  "enqueue by transact on turn-step",
];
const CLAIMS = ["register approval::resolve", "register provider::named::stream", "register stream::set(agent::events)"];
/** A tool on its own data, and its own session. `approvals` the topic belongs to the scope's owners. */
const TOOL = [
  "register own::fn",
  "call models::list",
  "read its session",
  "read scope notes",
  "write scope notes",
  "watch scope notes",
  "enqueue own::other",
];
const PUBLISHES = ["publish to topic approvals"];

interface Asker {
  readonly who: string;
  readonly may: readonly string[];
  /** Runs one deed as this asker. */
  ask(rig: Rig, deed: Deed): Promise<string>;
}

const tool =
  (proven: boolean, when: "in the call" | "after its answer" | "after a reconnect" | "on a second socket"): Asker["ask"] =>
  async (rig, deed) => {
    const own = await toolOf(rig, { proven });
    let told = "";
    await own.run(async () => {
      if (when === "in the call") told = await deed(own.client, rig);
      if (when === "on a second socket") told = await deed(await own.second(), rig);
    });
    if (when === "after its answer") told = await deed(own.client, rig);
    if (when === "after a reconnect") {
      await own.reconnect();
      told = await deed(own.client, rig);
    }
    return told;
  };

const ASKERS: readonly Asker[] = [
  {
    who: "a page without a key",
    may: STRANGER,
    ask: async (rig, deed) => deed(await as(rig, "page", "nobody", PAGE), rig),
  },
  {
    who: "a page with its key",
    may: [...STRANGER, ...DECIDES, ...WRITES, ...PUBLISHES],
    ask: async (rig, deed) => deed(await as(rig, "page", "operator", PAGE), rig),
  },
  {
    who: "a person's command line",
    may: [...STRANGER, ...DECIDES, ...WRITES, ...PUBLISHES, "call auth::get_token"],
    ask: async (rig, deed) => deed(await as(rig, "iii", "operator"), rig),
  },
  {
    who: "a local client that proved nothing",
    may: STRANGER,
    ask: async (rig, deed) => deed(await as(rig, "client", "nobody"), rig),
  },
  {
    who: "a proven worker that provides and calls nothing",
    may: STRANGER,
    ask: async (rig, deed) => deed(await as(rig, "plain", {}), rig),
  },
  {
    who: "a proven worker that provides approval::*",
    may: [
      ...STRANGER,
      "register approval::resolve",
      "call approval::resolve",
      "bind approval::resolve",
      "write scope approvals",
      ...PUBLISHES,
    ],
    ask: async (rig, deed) => deed(await as(rig, "gate", { provides: ["approval::*"] }), rig),
  },
  {
    who: "a proven worker that calls approval::*",
    may: [...STRANGER, "call approval::resolve", "bind approval::resolve"],
    ask: async (rig, deed) => deed(await as(rig, "surface", { calls: ["approval::*"] }), rig),
  },
  {
    who: "a proven worker with every right",
    may: [...STRANGER, ...DECIDES, ...WRITES, ...PUBLISHES, ...CLAIMS, "call auth::get_token"],
    ask: async (rig, deed) => deed(await as(rig, "all", { provides: ["*"], calls: ["*"] }), rig),
  },
  { who: "a tool of an unproven client, in the call", may: TOOL, ask: tool(false, "in the call") },
  { who: "a tool of an unproven client, after its answer", may: TOOL, ask: tool(false, "after its answer") },
  { who: "a tool of an unproven client, after a reconnect", may: TOOL, ask: tool(false, "after a reconnect") },
  {
    // It never reattached: nobody can tell it from another new client. It may start a turn, and decides nothing.
    who: "a second socket of an unproven tool",
    may: STRANGER,
    ask: tool(false, "on a second socket"),
  },
  { who: "a tool of a proven entry, in the call", may: TOOL, ask: tool(true, "in the call") },
  { who: "a tool of a proven entry, after its answer", may: TOOL, ask: tool(true, "after its answer") },
  { who: "a tool of a proven entry, after a reconnect", may: TOOL, ask: tool(true, "after a reconnect") },
  { who: "a second socket of a proven tool", may: TOOL, ask: tool(true, "on a second socket") },
  {
    who: "a message that a tool enqueued",
    may: TOOL,
    ask: async (rig, deed) => {
      const told = Promise.withResolvers<string>();
      const worker = await as(rig, "later", "nobody");
      worker.registerFunction("later::do", async () => told.resolve(await deed(worker, rig)));
      await settle();
      const own = await toolOf(rig, { proven: true });
      await own.run(() => own.client.trigger("later::do", {}, { action: { type: "enqueue", queue: "own" } }));
      return told.promise;
    },
  },
  {
    who: "a trigger that a tool's write fires",
    may: TOOL,
    ask: async (rig, deed) => {
      const told = Promise.withResolvers<string>();
      const worker = await as(rig, "later", "nobody");
      worker.registerFunction("later::do", async () => told.resolve(await deed(worker, rig)));
      worker.registerTrigger({ type: "state", function_id: "later::do", config: { scope: "watched" } });
      await settle();
      const own = await toolOf(rig, { proven: true });
      await own.run(() => own.client.trigger("state::set", { scope: "watched", key: "k", value: 1 }));
      return told.promise;
    },
  },
  {
    who: "a stream's subscriber that a tool's item wakes",
    may: TOOL,
    ask: async (rig, deed) => {
      const told = Promise.withResolvers<string>();
      const worker = await as(rig, "later", "nobody");
      worker.registerFunction("later::do", async () => told.resolve(await deed(worker, rig)));
      worker.registerTrigger({ type: "stream", function_id: "later::do", config: { stream_name: "watched" } });
      await settle();
      const own = await toolOf(rig, { proven: true });
      const item = { stream_name: "watched", group_id: "g", item_id: "i", data: {} };
      await own.run(() => own.client.trigger("stream::set", item));
      return told.promise;
    },
  },
  {
    who: "a topic's subscriber that a tool's value reaches",
    may: TOOL,
    ask: async (rig, deed) => {
      const told = Promise.withResolvers<string>();
      const worker = await as(rig, "later", "nobody");
      worker.registerFunction("later::do", async () => told.resolve(await deed(worker, rig)));
      worker.registerTrigger({ type: "subscribe", function_id: "later::do", config: { topic: "watched" } });
      await settle();
      const own = await toolOf(rig, { proven: true });
      await own.run(() => own.client.trigger("publish", { topic: "watched", data: 1 }));
      return told.promise;
    },
  },
];

describe.each(ASKERS)("P5.4 $who", ({ may, ask }) => {
  test.each(Object.entries(DEEDS))("%s", async (name, deed) => {
    await using rig = await accessRig();
    rig.bus.entries.set("named", { provides: ["provider::named::*"], calls: [] });
    const told = await ask(rig, deed);
    if (may.includes(name)) expect(told).not.toBe(NO);
    else expect(told).toBe(NO);
  });
});

test("every deed that an asker is said to do exists", () => {
  for (const { may } of ASKERS) for (const name of may) expect(Object.keys(DEEDS)).toContain(name);
});
