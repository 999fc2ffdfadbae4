// The meta-worker on a bus: ids and baggage reach run::start, and a page hears its session, also after a crash.
import { AGENT_EVENTS, type AgentEvent, type Model } from "@iii/contracts";
import { streamSet } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { type Call, defineWorker } from "@iii/sdk";
import { modelsDefault } from "@iii/worker-models-catalog/contract";
import { checkPermissions } from "@iii/worker-policy/contract";
import { type RunStartPayload, runStart } from "@iii/worker-turn-orchestrator/contract";
import { expect, test } from "vitest";
import { z } from "zod";
import { harnessTrigger, sessionPushId, sessionsChangedId, uiSubscribe, uiUnsubscribe } from "../src/contract.ts";
import { worker } from "../src/register.ts";

type Bus = Awaited<ReturnType<typeof testBus>>;
const delta = (text: string): AgentEvent => ({
  type: "message_update",
  message_id: "m",
  attempt: 1,
  llm_event: { type: "text_delta", delta: text },
});
const emit = (bus: Bus, session: string, id: string) =>
  bus.call(streamSet, { stream_name: AGENT_EVENTS, group_id: session, item_id: id, data: delta(id), ephemeral: true });

/** A worker that takes runs and keeps them: any worker may serve run::start. */
function recorder() {
  const runs: { run: RunStartPayload; call: Call }[] = [];
  const starter = defineWorker({
    name: "starter",
    config: z.object({}),
    register(on) {
      on(runStart, (run, call) => {
        runs.push({ run, call });
        return run.if_busy === "reject"
          ? { session_id: run.session_id, started: false, reason: "session_busy" as const }
          : { session_id: run.session_id, turn_id: "t", started: true };
      });
    },
  });
  return { runs, starter };
}

test("a run gets its ids in payload and baggage", async () => {
  const { runs, starter } = recorder();
  await using bus = await testBus([starter, { worker, config: { default_provider: "p", default_model: "m" } }]);
  const payload = { messages: [{ role: "user" as const, content: [{ type: "text" as const, text: "hi" }], timestamp: 1 }] };
  const answer = await bus.call(harnessTrigger, { session_id: "s", message_id: "x", payload });
  expect(answer).toMatchObject({ status_code: 200, body: { session_id: "s", started: true } });
  expect(runs[0]?.run).toMatchObject({ session_id: "s", message_id: "x", provider: "p", model: "m" });
  expect(runs[0]?.call.baggage).toContain("iii.session.id=s");
  expect(runs[0]?.call.baggage).toContain("iii.message.id=x");
});
test("U44 a run that names no model gets the catalogue's choice, also of a catalogue that has to learn its models first", async () => {
  const { runs, starter } = recorder();
  let known: Model | null = null;
  const catalogue = defineWorker({
    name: "catalogue",
    config: z.object({}),
    register: (on) => on(modelsDefault, () => known),
  });
  await using bus = await testBus([starter, catalogue, worker]);
  const asked = bus.call(harnessTrigger, { payload: { messages: [] } });
  await bus.settle();
  expect(runs).toHaveLength(0);
  known = { id: "big", provider: "acme", api: "x", display_name: "Big", context_window: 1 };
  await bus.clock.advance(200);
  expect(await asked).toMatchObject({ status_code: 200 });
  expect(runs[0]?.run).toMatchObject({ provider: "acme", model: "big" });
});
test("U44 without a catalogue and a default the error names what is missing", async () => {
  await using bus = await testBus([recorder().starter, worker]);
  const refused = expect(bus.call(harnessTrigger, { payload: { messages: [] } })).rejects.toMatchObject({
    code: "invalid_payload",
    message: expect.stringContaining("'provider'"),
  });
  await bus.clock.advance(6_000);
  await refused;
});
test("an HTTP body is unwrapped, and errors become a status", async () => {
  const { starter } = recorder();
  await using bus = await testBus([starter, worker]);
  const http = (body: unknown) =>
    bus.call<{ status_code: number; body: unknown }>("harness::trigger", { body, headers: {}, method: "POST" });
  const payload = { provider: "p", model: "m", messages: [{ role: "user", content: "hi" }] };
  expect(await http({ payload })).toMatchObject({ status_code: 200 });
  expect(await http({ payload: { ...payload, if_busy: "reject" } })).toMatchObject({ status_code: 409, body: { reason: "session_busy" } });
  expect(await http({})).toMatchObject({
    status_code: 400,
    body: { error: { code: "invalid_payload", message: expect.stringContaining("payload") } },
  });
  expect(await http(null)).toMatchObject({ status_code: 400, body: { error: { message: expect.stringContaining("content-type") } } });
  await expect(bus.call("harness::trigger", {})).rejects.toMatchObject({ code: "invalid_payload" });
});
test("without an orchestrator HTTP says so", async () => {
  await using bus = await testBus([worker]);
  const answer = await bus.call("harness::trigger", { body: { payload: { provider: "p", model: "m" } } });
  expect(answer).toMatchObject({ status_code: 503, body: { error: { code: "function_not_found" } } });
});
test("an agent cannot start turns here", async () => {
  await using bus = await testBus([worker]);
  await expect(bus.call("harness::trigger", { payload: {} }, { origin: "agent" })).rejects.toMatchObject({ code: "FORBIDDEN" });
});

async function page(bus: Bus, id = "b1") {
  const browser = await bus.connect(id, { origin: "http://127.0.0.1" });
  const heard: string[] = [];
  browser.registerFunction(sessionPushId(id), (push) => {
    const { session_id, seq, event } = push as { session_id: string; seq: number; event: AgentEvent };
    heard.push(
      `${session_id}#${seq} ${event.type === "message_update" && "delta" in event.llm_event ? event.llm_event.delta : event.type}`,
    );
    return null;
  });
  browser.registerFunction(sessionsChangedId(id), (change) => {
    heard.push(`+${(change as { added: string[] }).added.join(",")}`);
    return null;
  });
  await bus.settle();
  return { browser, heard };
}

test("a page hears its session in order, and what it missed on return", async () => {
  await using bus = await testBus([worker]);
  const { browser, heard } = await page(bus);
  const first = await browser.trigger(uiSubscribe, { browser_id: "b1", session_id: "s" });
  expect(first).toMatchObject({ ok: true, total_browsers: 1, items: [] });
  for (const id of ["1", "2", "3"]) await emit(bus, "s", id);
  await emit(bus, "other", "x");
  await expect.poll(() => heard).toEqual(["s#1 1", "s#2 2", "s#3 3"]);
  await browser.trigger(uiUnsubscribe, { browser_id: "b1", session_id: "s" });
  await emit(bus, "s", "4");
  const again = await browser.trigger(uiSubscribe, { browser_id: "b1", session_id: "s", since: 3, epoch: first.epoch ?? "" });
  expect(again).toMatchObject({ gap: false, seq: 4, items: [{ seq: 4, event: { llm_event: { delta: "4" } } }] });
  await emit(bus, "s", "5");
  await expect.poll(() => heard.at(-1)).toBe("s#5 5");
  expect(heard).toHaveLength(4);
});
test("a page that listens to all hears of new sessions", async () => {
  await using bus = await testBus([worker]);
  const { browser, heard } = await page(bus);
  await browser.trigger(uiSubscribe, { browser_id: "b1" });
  await bus.call("state::set", { scope: "session_index", key: "s9", value: { created_at: 1 } });
  await bus.call("state::set", { scope: "session_index", key: "s9", value: { created_at: 2 } });
  await expect.poll(() => heard).toEqual(["+s9"]);
});
test("after a crash a page subscribes again and is told what is gone", async () => {
  await using bus = await testBus([worker]);
  const { browser, heard } = await page(bus);
  const before = await browser.trigger(uiSubscribe, { browser_id: "b1", session_id: "s" });
  await emit(bus, "s", "1");
  await expect.poll(() => heard).toHaveLength(1);
  await bus.crash();
  const after = await browser.trigger(uiSubscribe, { browser_id: "b1", session_id: "s", since: 1, epoch: before.epoch ?? "" });
  expect(after).toMatchObject({ gap: true, total_browsers: 1 });
  await emit(bus, "s", "2");
  await expect.poll(() => heard).toHaveLength(2);
});
test("a page that went away is forgotten", async () => {
  await using bus = await testBus([worker]);
  const { browser } = await page(bus);
  await browser.trigger(uiSubscribe, { browser_id: "b1", session_id: "s" });
  await browser.close();
  await bus.settle();
  await emit(bus, "s", "1");
  const total = async () => (await bus.call(uiUnsubscribe, { browser_id: "nobody" })).total_browsers;
  await expect.poll(total).toBe(0);
});
test("allow_all answers for a policy worker only when it is asked for", async () => {
  await using plain = await testBus([worker]);
  await expect(plain.call(checkPermissions, { function_id: "x" })).rejects.toMatchObject({ code: "function_not_found" });
  await using open = await testBus([{ worker, config: { policy: "allow_all" } }]);
  expect(await open.call(checkPermissions, { function_id: "x" })).toEqual({ decision: "allow", rule_id: "allow_all" });
});
