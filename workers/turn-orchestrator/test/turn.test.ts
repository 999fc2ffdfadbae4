// A turn on the real engine core: from run::start to its end, through tools, people, errors and aborts.
import { expect, test } from "vitest";
import { worker as models } from "../../models-catalog/src/register.ts";
import { runAbort } from "../src/contract.ts";
import { call, ended, events, gate, results, stack, start, text, tools, toyProvider, transcript, until, user } from "./rig.ts";

test("a turn without calls streams, is stored and ends stopped", async () => {
  const provider = toyProvider(() => [text("hello there")]);
  await using bus = await stack([provider.worker]);
  const answer = await start(bus, "s1", [user("hi")]);
  expect(answer.started).toBe(true);
  const view = await until(bus, "s1", ended);
  expect(view).toMatchObject({ state: "stopped", stop_reason: "end", turn_count: 1 });
  const messages = await transcript(bus, "s1");
  expect(messages.map((message) => message.role)).toEqual(["user", "assistant"]);
  const types = (await events(bus, "s1")).map((event) => event.type);
  expect(types.filter((type) => type === "agent_end")).toHaveLength(1);
  expect(types).toContain("message_complete");
  expect(types).not.toContain("message_update");
});

test("a call runs, its result goes to the model, and the events come in the contract's order", async () => {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::once", { a: 1 })] : [text("done")]));
  const toy = tools();
  await using bus = await stack([provider.worker, gate().worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", ended);
  expect(toy.ledger).toHaveLength(1);
  expect(toy.ledger[0]).toMatchObject({ function_id: "t::once", args: { a: 1 } });
  expect(provider.seen[1]?.map((message) => message.role)).toEqual(["user", "assistant", "function_result"]);
  expect((await transcript(bus, "s1")).map((message) => message.role)).toEqual(["user", "assistant", "function_result", "assistant"]);
  const shown = (await events(bus, "s1")).map((event) => (event.type === "turn_state_changed" ? event.new_value.state : event.type));
  expect(shown).toEqual([
    "provisioning",
    "assistant_streaming",
    "message_complete",
    "function_execute",
    "function_execution_start",
    "function_execution_end",
    "turn_end",
    "steering_check",
    "assistant_streaming",
    "message_complete",
    "steering_check",
    "turn_end",
    "agent_end",
    "stopped",
  ]);
});

test("without a gate every call is refused and the model is told", async () => {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::once")] : [text("ok")]));
  const toy = tools();
  await using bus = await stack([provider.worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", ended);
  expect(toy.ledger).toHaveLength(0);
  expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ status: "denied", denied_by: "gate_unavailable" });
});

test("a function's own exception is an ordinary error result, not a denial, and says no key", async () => {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::throws")] : [text("ok")]));
  await using bus = await stack([provider.worker, gate().worker, tools().worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", ended);
  const [result] = results(await transcript(bus, "s1"));
  expect(result).toMatchObject({
    is_error: true,
    details: { error: "invocation_failed", message: "the disk is on fire, and so is [redacted]" },
  });
});

test("a cut stream is an error and its text is kept with its mark", async () => {
  const provider = toyProvider(() => "cut");
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  const view = await until(bus, "s1", ended);
  expect(view).toMatchObject({ state: "stopped", stop_reason: "error" });
  expect((await transcript(bus, "s1")).at(-1)).toMatchObject({ stop_reason: "error", content: [text("half an ans")] });
  expect(provider.seen).toHaveLength(1);
});

test.each(["transient", "rate_limited", "permanent"] as const)(
  "K3.2 what a provider answers stands: after its %s error it is not asked again",
  async (kind) => {
    const provider = toyProvider((_messages, nth) => (nth === 1 ? { stop: "error", kind, content: [] } : [text("second time")]));
    await using bus = await stack([provider.worker]);
    await start(bus, "s1", [user("go")]);
    expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "error", turn_count: 1 });
    expect(provider.seen).toHaveLength(1);
  },
);

test("W6 abort closes the provider's request before the turn is shown as stopped", async () => {
  const provider = toyProvider(() => "hang");
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", (view) => view.state === "assistant_streaming" && provider.seen.length === 1);
  expect(await bus.call(runAbort, { session_id: "s1" })).toMatchObject({ aborted: true });
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "aborted" });
  expect(provider.aborts()).toBe(1);
  expect(await bus.call(runAbort, { session_id: "s1" })).toMatchObject({ aborted: false, state: "stopped" });
});

test("case 28: abort during the first call: the others never start, and each call has one result", async () => {
  const batch = [1, 2, 3, 4, 5].map((n) => call(n === 1 ? "t::slow" : "t::once", { n }, `c${n}`));
  const provider = toyProvider((messages) => (results(messages).length === 0 ? batch : [text("hi again")]));
  const toy = tools();
  await using bus = await stack([provider.worker, gate().worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", () => toy.ledger.length === 1);
  await bus.call(runAbort, { session_id: "s1" });
  expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "aborted" });
  expect(toy.ledger).toHaveLength(1);
  expect(toy.cancelled()).toBe(1);
  expect(results(await transcript(bus, "s1")).map((result) => result.function_call_id)).toEqual(["c1", "c2", "c3", "c4", "c5"]);
  // case 26: the next message is accepted, with every call answered
  await start(bus, "s1", [user("hi")]);
  await until(bus, "s1", (view) => view.stop_reason === "end");
  expect(provider.seen.at(-1)?.filter((message) => message.role === "function_result")).toHaveLength(5);
});

test("a busy session queues in order, and reject answers session_busy", async () => {
  const provider = toyProvider((messages) => [text(`to ${messages.length}`)]);
  await using bus = await stack([provider.worker]);
  const [first, second, third] = await Promise.all([
    start(bus, "s1", [user("a")], { message_id: "m1" }),
    start(bus, "s1", [user("b")], { message_id: "m2" }),
    start(bus, "s1", [user("c")], { message_id: "m3", if_busy: "reject" }),
  ]);
  const started = [first, second, third].filter((answer) => answer.started);
  expect(started).toHaveLength(1);
  expect([first, second].filter((answer) => answer.queued)).toHaveLength(third.started ? 2 : 1);
  await until(bus, "s1", (view) => ended(view) && provider.seen.length === (third.started ? 3 : 2));
});

test("the same message_id gives one turn and the same receipt", async () => {
  const provider = toyProvider(() => [text("once")]);
  await using bus = await stack([provider.worker]);
  const many = await Promise.all(Array.from({ length: 10 }, () => start(bus, "s1", [user("a")], { message_id: "m1" })));
  expect(new Set(many.map((answer) => answer.turn_id)).size).toBe(1);
  expect(many.filter((answer) => answer.deduplicated !== true)).toHaveLength(1);
  await until(bus, "s1", ended);
  await expect(start(bus, "s1", [user("other")], { message_id: "m1" })).rejects.toMatchObject({ code: "idempotency_conflict" });
  expect(provider.seen).toHaveLength(1);
});

test("an unknown provider is named, with those that are connected", async () => {
  const provider = toyProvider(() => [text("x")]);
  await using bus = await stack([provider.worker]);
  const asked = start(bus, "s1", [user("a")], { provider: "tyo" });
  await expect(asked).rejects.toMatchObject({ code: "provider_unknown", details: { known: ["toy"] } });
});

test("K12.3 an unknown model is answered with what is known, and with how one is added", async () => {
  const provider = toyProvider(() => [text("x")]);
  await using bus = await stack([provider.worker, models]);
  const registered = { id: "m-large", provider: "toy", api: "toy", display_name: "M", context_window: 1_000 };
  await bus.call("models::register", registered);
  await expect(start(bus, "s1", [user("a")], { model: "m-lrge" })).rejects.toMatchObject({
    code: "model_unknown",
    message: expect.stringMatching(/did you mean 'm-large'\?.*models::register/),
    details: { near: ["m-large"], known: ["m-large"] },
  });
});

test("max_turns ends a turn that goes on calling, with a message that says so", async () => {
  const provider = toyProvider((_messages, nth) => [call("t::pure", { nth }, `c${nth}`)]);
  await using bus = await stack([provider.worker, gate().worker, tools().worker]);
  await start(bus, "s1", [user("a")], { max_turns: 3 });
  expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "max_turns", turn_count: 3 });
  expect(provider.seen).toHaveLength(3);
});

test("terminate on every result stops the turn", async () => {
  const provider = toyProvider(() => [call("t::end")]);
  await using bus = await stack([provider.worker, gate().worker, tools().worker]);
  await start(bus, "s1", [user("a")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "terminated" });
});

test("a result over the limit is cut, and the whole is under its handle", async () => {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::big")] : [text("ok")]));
  await using bus = await stack([provider.worker, gate().worker, tools().worker]);
  await start(bus, "s1", [user("a")]);
  await until(bus, "s1", ended);
  const [result] = results(await transcript(bus, "s1"));
  const { handle } = (result?.details ?? {}) as { handle: { scope: string; key: string } };
  expect(JSON.stringify(result).length).toBeLessThan(256 * 1024);
  const whole = await bus.call<{ content: { text: string }[] }>("state::get", handle);
  expect(whole.content[0]?.text.length).toBe(600_000);
});

test("case 52: call ids that the model repeats become unique, and each call has its own result", async () => {
  const provider = toyProvider((_messages, nth) =>
    nth <= 2 ? [call("t::once", { nth }, "search:0"), call("t::pure", { nth }, "search:0")] : [text("ok")],
  );
  const toy = tools();
  await using bus = await stack([provider.worker, gate().worker, toy.worker]);
  await start(bus, "s1", [user("a")]);
  await until(bus, "s1", ended);
  const ids = results(await transcript(bus, "s1")).map((result) => result.function_call_id);
  expect(ids).toHaveLength(4);
  expect(new Set(ids).size).toBe(4);
  expect(toy.ledger).toHaveLength(4);
});
