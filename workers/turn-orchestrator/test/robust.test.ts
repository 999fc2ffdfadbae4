// What goes wrong around a turn: steps that fail, providers that come late, effects that are cut off, streams that must stay small.
import { AGENT_EVENTS } from "@iii/contracts";
import { createMemoryStore } from "@iii/engine";
import { StreamEvent } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { BusError } from "@iii/sdk";
import { expect, test } from "vitest";
import { runAbort } from "../src/contract.ts";
import { orchestrator } from "../src/register.ts";
import { call, ended, events, gate, results, stack, start, text, tools, toyProvider, transcript, until, user } from "./rig.ts";

test("a record that lost its request ends as failed with a reason, not in silence", async () => {
  const provider = toyProvider(() => "hang");
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", () => provider.seen.length === 1);
  await bus.call("state::delete", { scope: "session", key: "s1/run_request" });
  await bus.crash();
  const view = await until(bus, "s1", ended);
  expect(view).toMatchObject({ state: "failed", error: { kind: "store_corrupt" } });
  const types = (await events(bus, "s1")).map((event) => event.type);
  expect(types.slice(-3)).toEqual(["turn_end", "agent_end", "turn_state_changed"]);
  expect(await bus.call("state::list", { scope: "active_turns" })).toEqual([]);
});

test("W4 a step that keeps failing ends the turn as failed, also when not even the transcript can be reached", async () => {
  const provider = toyProvider(() => [text("never stored")]);
  await using bus = await stack([provider.worker], { transcript: "tree", max_step_failures: 3 });
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended, 600)).toMatchObject({ state: "failed", error: { kind: "store_unavailable" } });
}, 60_000);

test("a turn that is given up starts the run behind it: every accepted turn ends", async () => {
  const provider = toyProvider(() => [text("never stored")]);
  await using bus = await stack([provider.worker], { transcript: "tree", max_step_failures: 2 });
  await start(bus, "s1", [user("go")], { message_id: "m1" });
  expect(await start(bus, "s1", [user("and on")], { message_id: "m2" })).toMatchObject({ queued: true });
  await until(bus, "s1", (view) => ended(view) && view.message_id === "m2", 600);
  expect(await bus.call("state::list", { scope: "active_turns" })).toEqual([]);
}, 60_000);

test("a result that is too large to keep is cut all the same, and says that the rest is gone", async () => {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::big", { size: 17_000_000 })] : [text("ok")]));
  await using bus = await stack([provider.worker, gate().worker, tools().worker]);
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "end" });
  const [result] = results(await transcript(bus, "s1"));
  expect(result).toMatchObject({ is_error: false, details: { truncated: true } });
  expect(result?.content[0]).toMatchObject({ text: expect.stringContaining("was too large to keep") });
});

test("a provider that went away is waited for, and then named", async () => {
  const provider = toyProvider(() => [text("here again")]);
  await using bus = await stack([provider.worker]);
  const late = await bus.connect("late-provider");
  const stub = late.registerFunction("provider::late::stream", () => ({ ok: false }));
  await bus.settle();
  await bus.call("run::start", { session_id: "s1", provider: "late", model: "m", messages: [user("go")] });
  stub.unregister();
  const view = await until(bus, "s1", ended);
  expect(view).toMatchObject({
    state: "stopped",
    stop_reason: "error",
    error: { message: expect.stringContaining("'late' is not connected") },
  });
});

test("the sweeper wakes a turn whose step message is gone", async () => {
  const provider = toyProvider(() => [text("woken")]);
  let fail = true;
  await using bus = await stack([provider.worker], { max_step_failures: 1_000 }, (name) => {
    if (fail && name === "turn.commit.before") throw new BusError("store_unavailable", "not now");
    return undefined;
  });
  await start(bus, "s1", [user("go")]);
  await bus.clock.advance(90_000);
  expect(await bus.call("engine::queue::dlq_messages", { queue: "turn-step" })).not.toEqual([]);
  fail = false;
  expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "end" });
});

test("an idempotent call that was cut off runs again with the same key; others are answered as unknown", async () => {
  const provider = toyProvider((messages) =>
    results(messages).length === 0 ? [call("t::again", {}, "c1"), call("t::once", {}, "c2")] : [text("ok")],
  );
  const toy = tools();
  let armed = 2;
  let reached: (() => void) | undefined;
  const died = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const point = (name: string) => {
    if (name !== "effect.after_exec_before_record") return undefined;
    armed -= 1;
    if (armed !== 0) return undefined;
    reached?.();
    return new Promise<void>(() => undefined);
  };
  await using bus = await stack([provider.worker, gate().worker, toy.worker], {}, point);
  await start(bus, "s1", [user("go")]);
  for (let tick = 0; tick < 50 && toy.ledger.length < 2; tick += 1) await bus.clock.advance(100);
  await died;
  await bus.crash();
  await until(bus, "s1", ended);
  const [again, once] = results(await transcript(bus, "s1"));
  expect(again?.is_error).toBe(false);
  expect(once?.details).toMatchObject({ error: "outcome_unknown" });
  expect(toy.ledger.filter((entry) => entry.function_id === "t::once")).toHaveLength(1);
});

test("abort flags survive: an abort that is durable when the process dies ends the turn after the restart", async () => {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::slow", {}, "c1")] : [text("no")]));
  const toy = tools();
  await using bus = await stack([provider.worker, gate().worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", () => toy.ledger.length === 1);
  void bus.call(runAbort, { session_id: "s1" }).catch(() => undefined);
  await bus.settle();
  await bus.crash();
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "aborted" });
  expect(provider.seen).toHaveLength(1);
});

test("bytes on agent::events grow linearly with the text, and the deltas join to the message", async () => {
  const sizes: number[] = [];
  for (const words of [200, 400]) {
    const said = Array.from({ length: words }, (_, index) => text(`word${index} `));
    const provider = toyProvider(() => said);
    await using bus = await stack([provider.worker]);
    let bytes = 0;
    const joined = new Map<number, string>();
    const watcher = await bus.connect("watcher");
    watcher.registerFunction("watch::events", (frame) => {
      const { event } = StreamEvent.parse(frame);
      bytes += JSON.stringify(frame).length;
      const data =
        "data" in event ? (event.data as { type: string; block?: number; offset?: number; llm_event?: { delta?: string } }) : undefined;
      if (data?.type !== "message_update" || data.block === undefined || data.llm_event?.delta === undefined) return null;
      const known = joined.get(data.block) ?? "";
      expect(data.offset).toBe(known.length);
      joined.set(data.block, known + data.llm_event.delta);
      return null;
    });
    watcher.registerTrigger({ type: "stream", function_id: "watch::events", config: { stream_name: AGENT_EVENTS } });
    await bus.settle();
    await start(bus, "s1", [user("go")]);
    await until(bus, "s1", ended);
    expect([...joined.values()].join("")).toBe(said.map((block) => block.text).join(""));
    sizes.push(bytes);
  }
  expect(sizes[1] ?? 0).toBeLessThan((sizes[0] ?? 0) * 2.2);
});

test("a turn with one call costs six commits of its own", async () => {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::once")] : [text("ok")]));
  let commits = 0;
  const point = (name: string) => {
    if (name === "turn.commit.acked" || name === "run.accept.after_commit_before_reply") commits += 1;
  };
  await using bus = await stack([provider.worker, gate().worker, tools().worker], {}, point);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", ended);
  expect(commits).toBe(6);
});

test("W7 two deliveries of one session at once: the later one takes over, and the turn ends as it should", async () => {
  const provider = toyProvider((_messages, nth) => (nth === 1 ? "hang" : [text("second")]));
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", () => provider.seen.length === 1);
  // Not from the queue, so it can settle no message: the turn's own message does that.
  await bus.call("turn::step", { session_id: "s1" }).catch(() => undefined);
  const view = await until(bus, "s1", ended);
  expect(view).toMatchObject({ state: "stopped", stop_reason: "end", turn_count: 1 });
  expect((await transcript(bus, "s1")).map((message) => message.role)).toEqual(["user", "assistant"]);
});

test("runs that wait in line start in order, also when the process dies in between", async () => {
  const provider = toyProvider((messages) => [text(`answer ${messages.filter((message) => message.role === "user").length}`)]);
  await using bus = await stack([provider.worker]);
  for (const n of [1, 2, 3, 4]) await start(bus, "s1", [user(`question ${n}`)], { message_id: `m${n}` });
  await bus.crash();
  await until(bus, "s1", (view) => ended(view) && view.message_id === "m4");
  const said = (await transcript(bus, "s1")).map(
    (message) => message.role === "custom" || message.content[0]?.type !== "text" || message.content[0].text,
  );
  expect(said).toEqual([1, 2, 3, 4].flatMap((n) => [`question ${n}`, `answer ${n}`]));
});

test("a shutdown lets a running call end, asks no model any more, and the next process goes on", async () => {
  const store = createMemoryStore();
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::once", {}, "c1")] : "hang"));
  const toy = tools();
  {
    await using bus = await testBus(
      [provider.worker, gate().worker, toy.worker, { worker: orchestrator(), config: { startup_grace_ms: 0 } }],
      { store },
    );
    await start(bus, "s1", [user("go")]);
    await until(bus, "s1", () => provider.seen.length === 2);
  }
  const calm = toyProvider(() => [text("done")]);
  await using bus = await testBus([calm.worker, gate().worker, toy.worker, { worker: orchestrator(), config: { startup_grace_ms: 0 } }], {
    store: store.reopen(),
  });
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "end", turn_count: 2 });
  expect(toy.ledger).toHaveLength(1);
});
