// K2: one datum costs one call, one entry or one turn. It never costs a session.
import type { AgentMessage } from "@iii/contracts";
import { testBus } from "@iii/engine/testing";
import { APPROVALS_SCOPE } from "@iii/worker-approval-gate/contract";
import { appendEntry, sessionMessages } from "@iii/worker-session/contract";
import { expect, test } from "vitest";
import { worker as session } from "../../session/src/register.ts";
import { runAbort, turnGetState } from "../src/contract.ts";
import { orchestrator } from "../src/register.ts";
import { call, ended, events, gate, nested, results, stack, start, text, tools, toyProvider, transcript, until, user } from "./rig.ts";

type Bus = Awaited<ReturnType<typeof stack>>;

const ODD = JSON.parse('{"__proto__":{"a":1},"constructor":{"prototype":2},"prototype":[{"__proto__":null}]}');

/** The next message of the session is answered as if nothing had been. */
async function goesOn(bus: Bus, provider: { seen: AgentMessage[][] }): Promise<void> {
  const before = provider.seen.length;
  await start(bus, "s1", [user("and on")], { message_id: "on" });
  const view = await until(bus, "s1", (state) => ended(state) && state.message_id === "on");
  expect(view).toMatchObject({ state: "stopped", stop_reason: "end" });
  expect(provider.seen.length).toBeGreaterThan(before);
  expect(await bus.call("state::list", { scope: "active_turns" })).toEqual([]);
  expect(await bus.call("state::list", { scope: "session", prefix: "s1/pending/" })).toEqual([]);
}

/** Calls `fn` once per session; later questions are answered in words. */
const callsOnce = (fn: string, payload: unknown) =>
  toyProvider((messages, nth) => (nth === 1 && results(messages).length === 0 ? [call(fn, payload, "c1")] : [text("ok")]));

test("K2.1 odd keys in arguments and results are data", async () => {
  const provider = callsOnce("t::pure", ODD);
  const toy = tools();
  await using bus = await stack([provider.worker, gate().worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "end" });
  expect(JSON.stringify(toy.ledger[0]?.args)).toBe(JSON.stringify(ODD));
  expect(JSON.stringify(results(await transcript(bus, "s1"))[0]?.details)).toBe(JSON.stringify({ read: ODD }));
  await goesOn(bus, provider);
});

test.each([476, 477, 505, 1_000, 20_000])("K2.1 arguments of %i levels are used or are an error result of that call", async (levels) => {
  const provider = callsOnce("t::pure", { deep: nested(levels - 2) });
  const toy = tools();
  await using bus = await stack([provider.worker, gate().worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  const view = await until(bus, "s1", ended);
  expect(view.state).toBe("stopped");
  expect(view.stop_reason).toBe(levels < 10_000 ? "end" : "error");
  expect(toy.ledger).toHaveLength(levels <= 476 ? 1 : 0);
  if (view.stop_reason === "end") expect(results(await transcript(bus, "s1"))[0]?.is_error).toBe(levels > 476);
  await goesOn(bus, provider);
});

test.each([470, 480, 500, 510, 1_000])(
  "K2.1 a result of %i levels is kept as data or text, or is an error result of that call",
  async (levels) => {
    const provider = callsOnce("t::deep", { levels });
    await using bus = await stack([provider.worker, gate().worker, tools().worker]);
    await start(bus, "s1", [user("go")]);
    expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "end" });
    const [result] = results(await transcript(bus, "s1"));
    expect(JSON.stringify(result)).not.toContain("not finished");
    expect(result?.is_error).toBe(levels > 512);
    await goesOn(bus, provider);
  },
);

test("K2.2 an answer of 9 MB is an error of that answer, and the session goes on", async () => {
  const provider = toyProvider((_messages, nth) => [text(nth === 1 ? "x".repeat(9_000_000) : "short")]);
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  const view = await until(bus, "s1", ended);
  expect(view).toMatchObject({ state: "stopped", stop_reason: "error", error: { message: expect.stringContaining("payload_too_large") } });
  expect((await transcript(bus, "s1")).at(-1)).toMatchObject({ stop_reason: "error", content: [text("x".repeat(2_000))] });
  await goesOn(bus, provider);
});

test.each([
  ["too deep", [{ role: "custom", custom_type: "x", content: nested(490), timestamp: 1 }], "payload_too_deep"],
  ["too large", [user("x".repeat(8 * 1024 * 1024))], "payload_too_large"],
] as [string, AgentMessage[], string][])(
  "K2.1 messages that are %s are refused by name, and the next ones are taken",
  async (_what, messages, code) => {
    const provider = toyProvider(() => [text("ok")]);
    await using bus = await stack([provider.worker]);
    await expect(start(bus, "s1", messages)).rejects.toMatchObject({ code });
    await goesOn(bus, provider);
  },
);

test("K2.1 content that the store refuses is replaced by an error of that call: what ran is not said to be unfinished", async () => {
  const provider = callsOnce("t::big", { size: 90_000 });
  await using bus = await testBus(
    [provider.worker, gate().worker, tools().worker, { worker: orchestrator(), config: { startup_grace_ms: 0 } }],
    { config: { limits: { max_value_bytes: 60_000 } } },
  );
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "end" });
  const [result] = results(await transcript(bus, "s1"));
  expect(result).toMatchObject({ is_error: true, details: { error: "result_not_stored", code: "VALUE_TOO_LARGE" } });
  await goesOn(bus, provider);
});

test("K2.2 an answer that the store refuses is an error of that answer, and its calls do not run", async () => {
  const provider = toyProvider((_messages, nth) => (nth === 1 ? [text("x".repeat(70_000)), call("t::once", {}, "c1")] : [text("ok")]));
  const toy = tools();
  await using bus = await testBus(
    [provider.worker, gate().worker, toy.worker, { worker: orchestrator(), config: { startup_grace_ms: 0 } }],
    { config: { limits: { max_value_bytes: 60_000 } } },
  );
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "error" });
  expect(toy.ledger).toHaveLength(0);
  await goesOn(bus, provider);
});

const inTree = (workers: Parameters<typeof testBus>[0], options: Parameters<typeof testBus>[1] = {}) =>
  testBus([...(workers ?? []), session, { worker: orchestrator(), config: { startup_grace_ms: 0 } }], options);

test("K2.3 an entry id that is taken costs neither this turn nor the next", async () => {
  const provider = callsOnce("t::once", {});
  await using bus = await inTree([provider.worker, gate().worker, tools().worker]);
  await start(bus, "s1", [user("before")], { message_id: "m0" });
  const { turn_id } = await until(bus, "s1", ended);
  const next = await import("node:crypto").then(
    ({ createHash }) =>
      `t_${createHash("sha256")
        .update(JSON.stringify(["s1", "m1"]))
        .digest("hex")
        .slice(0, 16)}`,
  );
  expect(turn_id).not.toBe(next);
  for (const id of [`e_${next}_1`, `e_${next}_u0`, `e_${next}_1~2`])
    await bus.call(appendEntry, { session_id: "s1", entry_id: id, message: user("somebody else's") });
  await start(bus, "s1", [user("mine")], { message_id: "m1" });
  expect(await until(bus, "s1", (view) => ended(view) && view.message_id === "m1")).toMatchObject({ turn_id: next, state: "stopped" });
  const { messages } = await bus.call(sessionMessages, { session_id: "s1" });
  const said = messages.filter(({ entry_id }) => entry_id.startsWith(`e_${next}`)).map(({ message }) => message.role);
  expect(said).toEqual(["user", "user", "user", "user", "assistant"]);
  await goesOn(bus, provider);
});

test("K2.3 an entry that the transcript refuses for good is named, replaced and passed over", async () => {
  const provider = callsOnce("t::once", {});
  await using bus = await stack([provider.worker, gate().worker, tools().worker], { transcript: "tree" });
  const tree = await bus.connect("picky-session");
  const kept: { entry_id: string; message: AgentMessage }[] = [];
  const take = (entry_id: string, message: AgentMessage): void => {
    if (JSON.stringify(message).includes("did")) throw new Error("I do not like it");
    if (!kept.some((entry) => entry.entry_id === entry_id)) kept.push({ entry_id, message });
  };
  tree.registerFunction("session-tree::messages", () => ({ messages: kept }));
  tree.registerFunction("session-tree::append", (input) => {
    const { entry_id, message } = input as { entry_id: string; message: AgentMessage };
    take(entry_id, message);
    return { entry_id };
  });
  await bus.settle();
  await start(bus, "s1", [user("go")]);
  const view = await until(bus, "s1", ended);
  expect(view).toMatchObject({ state: "stopped", stop_reason: "end", lost_entries: [{ code: "invocation_failed" }] });
  expect(kept.map(({ message }) => message.role)).toEqual(["user", "assistant", "function_result", "assistant"]);
  expect(kept[2]?.message).toMatchObject({ is_error: true, details: { error: "not_stored" } });
  await goesOn(bus, provider);
});

const RECORD = { scope: "session", key: "s1/turn_state" };

test.each([
  ["a newer version", (record: object) => ({ ...record, version: 99, shiny: true })],
  ["no version", ({ version: _, ...record }: { version?: unknown }) => record],
  ["another shape", (record: object) => ({ ...record, calls: "none" })],
  ["a text", () => "what?"],
  ["a list", () => [1, 2]],
])("K2.4 a record that is %s ends its turn as failed, the run behind it starts, and the sweeper is content", async (_what, spoil) => {
  const provider = toyProvider((_messages, nth) => (nth === 2 ? "hang" : [text("ok")]));
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("before")], { message_id: "m0" });
  await until(bus, "s1", ended);
  await start(bus, "s1", [user("go")], { message_id: "m1" });
  await until(bus, "s1", () => provider.seen.length === 2);
  await bus.call("state::set", { ...RECORD, value: spoil(await bus.call("state::get", RECORD)) });
  expect(await bus.call(turnGetState, { session_id: "s1" })).toMatchObject({ state: "failed", error: { kind: "store_corrupt" } });
  expect(await start(bus, "s1", [user("behind")], { message_id: "m2" })).toMatchObject({ queued: true });
  await bus.crash();
  const view = await until(bus, "s1", (state) => ended(state) && state.message_id === "m2");
  expect(view).toMatchObject({ state: "stopped", stop_reason: "end" });
  const failed = (await events(bus, "s1")).filter((event) => event.type === "turn_state_changed" && event.new_value.state === "failed");
  expect(failed).toHaveLength(1);
  expect((await transcript(bus, "s1")).filter((message) => message.role === "user")).toHaveLength(3);
  expect(await bus.call("turn::sweep", {})).toEqual({ woken: 0 });
  await goesOn(bus, provider);
});

test("K2.4 a record of version 1 goes on where it was, with the entries that it carried", async () => {
  const provider = toyProvider((messages) => [text(`answer ${messages.length}`)]);
  let hold = true;
  const point = (name: string) => (hold && name === "turn.commit.before" ? new Promise<void>(() => undefined) : undefined);
  await using bus = await stack([provider.worker], {}, point);
  await start(bus, "s1", [user("one")], { message_id: "m1" });
  await start(bus, "s1", [user("two")], { message_id: "m2" });
  const old = ({ pending: _, ...record }: { pending?: unknown }, message: AgentMessage, id: string) => ({
    ...record,
    version: 1,
    retries: 0,
    pending_entries: [{ entry_id: id, message }],
  });
  await bus.call("state::set", { ...RECORD, value: old(await bus.call("state::get", RECORD), user("one"), "e_old_1") });
  await bus.call("state::delete", { scope: "session", key: "s1/pending/1" });
  const queued = { scope: "session", key: "s1/queue/1" };
  const waiting = await bus.call<{ record: object; request: object }>("state::get", queued);
  const value = { record: old(waiting.record, user("two"), "e_old_2"), request: waiting.request };
  await bus.call("state::set", { ...queued, value });
  hold = false;
  await bus.crash();
  const view = await until(bus, "s1", (state) => ended(state) && state.message_id === "m2");
  expect(view).toMatchObject({ state: "stopped", stop_reason: "end" });
  expect((await transcript(bus, "s1")).map((message) => message.role === "user" || message.role)).toEqual([
    true,
    "assistant",
    true,
    "assistant",
  ]);
  await goesOn(bus, provider);
});

test.each([
  ["a queued run", "session", "s1/queue/1", { record: 1 }],
  ["the line", "session", "s1/queue", "no numbers"],
  ["the run request", "session", "s1/run_request", { model: 1 }],
  ["the active row", "active_turns", "s1", 7],
  ["the index row", "session_index", "s1", { session_id: 1 }],
  ["a row of the transcript", "session", "s1/entry/x", "no entry"],
  ["a pending entry", "session", "s1/pending/1", "no entry"],
])("K2.7 %s that cannot be read costs no more than itself", async (_what, scope, key, value) => {
  const provider = toyProvider((_messages, nth) => (nth === 1 ? "hang" : [text("ok")]));
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")], { message_id: "m1" });
  await start(bus, "s1", [user("behind")], { message_id: "m2" });
  await until(bus, "s1", () => provider.seen.length === 1);
  await bus.call("state::set", { scope, key, value });
  await bus.crash();
  await until(bus, "s1", ended);
  await goesOn(bus, provider);
});

test("K2.7 an abort flag that cannot be read stops the turn that it stands for, and no other", async () => {
  const provider = toyProvider((_messages, nth) => (nth === 1 ? "hang" : [text("ok")]));
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", () => provider.seen.length === 1);
  await bus.call("state::set", { scope: "session", key: "s1/abort", value: "stop it" });
  await bus.crash();
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "aborted" });
  await goesOn(bus, provider);
});

test("K2.7 an approval row that cannot be read refuses its call, and nothing runs", async () => {
  const provider = callsOnce("t::once", {});
  const toy = tools();
  await using bus = await stack([provider.worker, gate(() => "needs_approval").worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", (view) => view.state === "function_awaiting_approval");
  await bus.call("state::set", { scope: APPROVALS_SCOPE, key: "s1/c1", value: { status: "decided", decision: "allow" } });
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped" });
  expect(toy.ledger).toHaveLength(0);
  expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ error: "approval_unreadable" });
  expect(await bus.call("state::list", { scope: APPROVALS_SCOPE })).toEqual([]);
  await goesOn(bus, provider);
});

test.each([
  ["larger than a decision", { decision: "allow", rule_id: "r".repeat(10_000_000) }],
  ["too deep", { decision: "deny", matched_constraint: { field: "x", operator: "equals", value: nested(490) } }],
])("K2.1 an answer of the gate that is %s is no answer, and the call is refused", async (_what, decision) => {
  const provider = callsOnce("t::once", {});
  const toy = tools();
  await using bus = await stack([provider.worker, toy.worker]);
  const policy = await bus.connect("loud-policy");
  policy.registerFunction("policy::check_permissions", () => decision);
  await bus.settle();
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "end" });
  expect(toy.ledger).toHaveLength(0);
  expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ denied_by: "gate_unavailable" });
  await goesOn(bus, provider);
});

test("K2.1 three hundred calls in one answer: the first 128 run, each has its result, and the turn goes on", async () => {
  const many = Array.from({ length: 300 }, (_, n) => call("t::pure", { n }, `c${n}`));
  const provider = toyProvider((_messages, nth) => (nth === 1 ? many : [text("ok")]));
  const toy = tools();
  await using bus = await stack([provider.worker, gate().worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "end" });
  expect(toy.ledger).toHaveLength(128);
  expect(results(await transcript(bus, "s1"))).toHaveLength(300);
  await goesOn(bus, provider);
}, 30_000);

test("K2.1 an error of a tool in megabytes and halves of characters is an error result of that call", async () => {
  const provider = callsOnce("t::loud", {});
  await using bus = await stack([provider.worker, gate().worker]);
  const tool = await bus.connect("loud-tool");
  tool.registerFunction("t::loud", () => {
    throw new Error(`\ud99c${"x".repeat(3_000_000)}`);
  });
  await bus.settle();
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "end" });
  const [result] = results(await transcript(bus, "s1"));
  expect(result?.is_error).toBe(true);
  expect(JSON.stringify(result).includes("\\ud99c")).toBe(false);
  await goesOn(bus, provider);
});

test("a reason with half a character is made whole", async () => {
  const provider = toyProvider((_messages, nth) => (nth === 1 ? "hang" : [text("ok")]));
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go \ud99c")]);
  await until(bus, "s1", () => provider.seen.length === 1);
  await bus.call(runAbort, { session_id: "s1", reason: "stop \ud99c" });
  await until(bus, "s1", ended);
  expect(JSON.stringify(await transcript(bus, "s1")).includes("\\ud99c")).toBe(false);
  await goesOn(bus, provider);
});
