// Live tokens on real processes: early, in deltas, gone afterwards; and a stream that is aborted, cut, queued or sent twice.
import { join } from "node:path";
import type { AgentEvent } from "@iii/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { anthropic, asAnthropic, type ModelServer, modelServer, wire } from "../support/model-server.ts";
import { type Stack, startStack, until } from "../support/stack.ts";
import { ended, pending, post, programEntry, readLedger, stateOf, textOf, transcript, userMessage } from "../support/turns.ts";

interface Seen {
  group: string;
  bytes: number;
  event: AgentEvent;
}

let stack: Stack;
let server: ModelServer;
/** Everything that came over `agent::events`, in order. */
const seen: Seen[] = [];

beforeAll(async () => {
  server = await modelServer();
  stack = await startStack({
    config: (shipped) => `${shipped}${programEntry("ledger", "support/ledger-worker.ts")}`,
    permissions: "version: 1\nrules:\n  - ledger::append\n",
    env: { ...asAnthropic(server), LEDGER: "ledger.txt" },
  });
  stack.iii.registerFunction("test::events", (payload) => {
    const { groupId, event } = payload as { groupId: string; event: { type: string; data: AgentEvent } };
    if (event.type !== "delete") seen.push({ group: groupId, bytes: JSON.stringify(event).length, event: event.data });
    return null;
  });
  stack.iii.registerTrigger({ type: "stream", function_id: "test::events", config: { stream_name: "agent::events" } });
  await stack.trigger("engine::functions::list", {});
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  server.exchanges.length = 0;
});

const of = (session_id: string): Seen[] => seen.filter((one) => one.group === session_id);
const ledger = () => readLedger(join(stack.folder, "ledger.txt"));

function agentEnd(session_id: string, count = 1): Promise<unknown> {
  return until(
    `${count} agent_end of ${session_id}`,
    () => of(session_id).filter((one) => one.event.type === "agent_end").length >= count || undefined,
  );
}

function deltaText(events: readonly Seen[]): string {
  return events
    .map(({ event }) => (event.type === "message_update" && event.llm_event.type === "text_delta" ? event.llm_event.delta : ""))
    .join("");
}

/** All that a page could read of the session now. */
async function history(session_id: string): Promise<{ items: { item_id: string | null }[] }> {
  return stack.trigger("stream::read", { stream_name: "agent::events", group_id: session_id });
}

interface Page {
  readonly pushes: { event?: AgentEvent; seq?: number }[];
  text(): string;
}

/** A page that listens to a session. */
async function page(browser_id: string, session_id: string): Promise<Page> {
  const pushes: Page["pushes"] = [];
  stack.iii.registerFunction(`ui::session::event::${browser_id}`, (push) => {
    pushes.push(push as Page["pushes"][number]);
    return null;
  });
  await stack.trigger("ui::subscribe", { browser_id, session_id });
  const text = () => deltaText(pushes.flatMap(({ event }) => (event === undefined ? [] : [{ group: session_id, bytes: 0, event }])));
  return { pushes, text };
}

describe("live", () => {
  test.each([
    ["many small deltas", 300, (words: number, text: string) => `slow ${words * 4} ${text}`],
    ["a burst", 3_000, (_words: number, text: string) => `say ${text}`],
  ])("A12 bytes on agent::events grow with the text, not with its square: %s", async (name, words, ask) => {
    const measure = async (count: number): Promise<{ bytes: number; deltas: number }> => {
      const session_id = `bytes-${count}-${name.length}`;
      await post(stack, session_id, ask(count, Array.from({ length: count }, (_, n) => `w${1_000 + (n % 9_000)}`).join(" ")));
      await agentEnd(session_id);
      const events = of(session_id);
      return {
        bytes: events.reduce((sum, one) => sum + one.bytes, 0),
        deltas: events.filter((one) => one.event.type === "message_update").length,
      };
    };
    const one = await measure(words);
    const four = await measure(words * 4);
    expect(four.bytes / one.bytes).toBeLessThan(4.6);
    if (name === "many small deltas") expect(four.deltas).toBeGreaterThan(30);
  });

  test("A2 the first token is on a page before the provider has sent its last byte", async () => {
    const listening = await page("b1", "early");
    await post(stack, "early", "hello", anthropic);
    const exchange = await server.request(1);
    exchange.send(wire.start, ...wire.text("first"));
    await until("the first token on the page", () => listening.text() === "first" || undefined);
    expect(await stateOf(stack, "early")).toMatchObject({ state: "assistant_streaming" });
    exchange.send(wire.more(" last"), wire.close(), ...wire.stop("end_turn"));
    exchange.end();
    expect(await ended(stack, "early")).toMatchObject({ state: "stopped", stop_reason: "end" });
    await until(
      "the whole message on the page",
      () => listening.pushes.some(({ event }) => event?.type === "message_complete") || undefined,
    );
    expect(listening.text()).toBe("first last");
    expect(textOf((await transcript(stack, "early")).messages.at(-1))).toBe("first last");
  });

  test("the same from the scripted provider: words come over its time, in order, each once", async () => {
    const listening = await page("b2", "slow");
    await post(stack, "slow", "slow 2000 one two three four five six seven eight");
    await until("the first word", () => listening.text().startsWith("one") || undefined);
    expect(listening.text()).not.toContain("eight");
    expect(await stateOf(stack, "slow")).toMatchObject({ state: "assistant_streaming" });
    await agentEnd("slow");
    expect(deltaText(of("slow"))).toBe("one two three four five six seven eight (demo)");
    await until("the same on the page", () => listening.text() === deltaText(of("slow")) || undefined);
    const seqs = listening.pushes.map((push) => push.seq ?? 0);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  });

  test("deltas can be read while they stream and are gone with the turn; the message stays", async () => {
    await post(stack, "gone", "slow 1200 a b c d e f");
    const isDelta = (item: { item_id: string | null }) => item.item_id?.includes("/d/") === true;
    await until("a delta in the history", async () => (await history("gone")).items.some(isDelta) || undefined);
    await agentEnd("gone");
    const { items } = await history("gone");
    expect(items.filter(isDelta)).toEqual([]);
    const kept = await stack.trigger<AgentEvent[]>("stream::list", { stream_name: "agent::events", group_id: "gone" });
    expect(kept.filter((event) => event.type === "message_update")).toEqual([]);
    const complete = kept.find((event) => event.type === "message_complete");
    expect(JSON.stringify(complete)).toContain("a b c d e f (demo)");
  });
});

describe("broken off", () => {
  test("A5 abort closes the model's request before the turn is shown as stopped, and keeps what was said", async () => {
    await post(stack, "abort", "hello", anthropic);
    const exchange = await server.request(1);
    exchange.send(wire.start, ...wire.text("half a sen"));
    await until("the text", () => deltaText(of("abort")) === "half a sen" || undefined);
    expect(exchange.closed).toBe(false);
    const closedWhenStopped = until("stopped to be shown", () => {
      const stopped = of("abort").some(({ event }) => event.type === "turn_state_changed" && event.new_value.state === "stopped");
      return stopped ? { closed: exchange.closed } : undefined;
    });
    const aborted = Date.now();
    expect(await stack.trigger("run::abort", { session_id: "abort" })).toMatchObject({ aborted: true });
    expect(await closedWhenStopped).toEqual({ closed: true });
    expect(Date.now() - aborted).toBeLessThan(3_000);
    expect(await stateOf(stack, "abort")).toMatchObject({ state: "stopped", stop_reason: "aborted" });
    const { messages } = await transcript(stack, "abort");
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(textOf(messages[1])).toContain("half a sen");
    expect(server.exchanges).toHaveLength(1);
  });

  const args = (note: string) => JSON.stringify({ function: "ledger::append", payload: { note } });
  test.each([
    ["in the middle of its arguments", "mid", (note: string) => wire.tool(args(note).slice(0, -8))],
    ["behind its arguments, before the block is closed", "unclosed", (note: string) => wire.tool(args(note))],
    ["behind the closed block, before the end", "unended", (note: string) => [...wire.tool(args(note)), wire.close()]],
  ])("a call whose stream is cut %s is never run, asked about or kept", async (_what, session_id, events) => {
    await post(stack, session_id, "hello", anthropic);
    const exchange = await server.request(1);
    exchange.send(wire.start, ...events(session_id));
    await until("the call to be on its way", () => of(session_id).some(({ event }) => event.type === "message_update") || undefined);
    exchange.cut();
    const view = await ended(stack, session_id);
    expect(view).toMatchObject({ stop_reason: "error" });
    expect(await pending(stack, session_id)).toEqual([]);
    const { calls, results } = await transcript(stack, session_id);
    expect([calls, results]).toEqual([[], []]);
    expect(ledger().filter(([, , , note]) => note === session_id)).toEqual([]);
    expect(server.exchanges).toHaveLength(1);
  });

  test("a call that the length limit cut gets a result that says so, and is not run; a whole one is run once", async () => {
    await post(stack, "length", "hello", anthropic);
    const first = await server.request(1);
    first.send(wire.start, ...wire.tool(args("length")), wire.close(), ...wire.stop("max_tokens"));
    first.end();
    expect(await ended(stack, "length")).toMatchObject({ state: "stopped", stop_reason: "length" });
    const { calls, results } = await transcript(stack, "length");
    expect(calls).toHaveLength(1);
    expect(results).toMatchObject([{ is_error: true }]);
    expect(results[0]?.text).toContain("not run");
    expect(ledger().filter(([, , , note]) => note === "length")).toEqual([]);

    await post(stack, "whole", "hello", anthropic);
    const whole = await server.request(2);
    whole.send(wire.start, ...wire.tool(args("whole")), wire.close(), ...wire.stop("tool_use"));
    whole.end();
    const after = await server.request(3);
    after.send(wire.start, ...wire.text("done"), wire.close(), ...wire.stop("end_turn"));
    after.end();
    expect(await ended(stack, "whole")).toMatchObject({ state: "stopped" });
    expect(ledger().filter(([kind, , , note]) => kind === "start" && note === "whole")).toHaveLength(1);
  });
});

describe("in line and twice", () => {
  test("turns that are queued behind a running one follow in order, each after the end of the one before", async () => {
    const first = await post(stack, "line", "slow 600 one");
    const others = [await post(stack, "line", "say two"), await post(stack, "line", "say three")];
    expect(first.body).toMatchObject({ started: true });
    for (const one of others) expect(one.body).toMatchObject({ started: false, queued: true });
    await agentEnd("line", 3);
    const { messages } = await transcript(stack, "line");
    expect(messages.map(textOf)).toEqual(["slow 600 one", "one (demo)", "say two", "two (demo)", "say three", "three (demo)"]);
    const ends = of("line").flatMap(({ event }) => (event.type === "agent_end" ? [event.turn_id] : []));
    expect(ends).toEqual([first, ...others].map((one) => one.body.turn_id));
    const order = of("line").flatMap(({ event }) => {
      if (event.type === "agent_end") return [`end ${event.turn_id}`];
      return event.type === "turn_state_changed" && event.new_value.state === "assistant_streaming"
        ? [`stream ${event.new_value.turn_id}`]
        : [];
    });
    expect(order).toEqual(ends.flatMap((id) => [`stream ${id}`, `end ${id}`]));
  });

  test("one message id is one turn, however often and by whichever door it is sent, also in line and after its end", async () => {
    const payload = { provider: "scripted", model: "demo", messages: [{ ...userMessage("slow 500 once"), timestamp: 1 }] };
    const request = { session_id: "same", message_id: "m1", payload };
    const overBus = () => stack.trigger<{ body: { turn_id: string } }>("harness::trigger", request).then(({ body }) => body);
    const overHttp = async () => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${stack.httpUrl}/harness/trigger`, { method: "POST", headers, body: JSON.stringify(request) });
      return (await response.json()) as { turn_id: string };
    };
    const answers = await Promise.all([overBus(), overHttp(), overBus(), overHttp(), overBus()]);
    expect(new Set(answers.map((answer) => answer.turn_id)).size).toBe(1);
    const queued = {
      session_id: "same",
      message_id: "m2",
      payload: { ...payload, messages: [{ ...userMessage("say queued"), timestamp: 1 }] },
    };
    const inLine = await Promise.all([stack.trigger("harness::trigger", queued), stack.trigger("harness::trigger", queued)]);
    expect(new Set(inLine.map((one) => (one as { body: { turn_id: string } }).body.turn_id)).size).toBe(1);
    await agentEnd("same", 2);
    expect(await overHttp()).toMatchObject({ turn_id: answers[0]?.turn_id, deduplicated: true });
    const { messages } = await transcript(stack, "same");
    expect(messages.map(textOf)).toEqual(["slow 500 once", "once (demo)", "say queued", "queued (demo)"]);
  });

  test("the same message id with another message is refused and changes nothing", async () => {
    await post(stack, "conflict", "say a", { message_id: "m1" });
    await agentEnd("conflict");
    await expect(post(stack, "conflict", "say b", { message_id: "m1" })).rejects.toMatchObject({ code: "idempotency_conflict" });
    expect((await transcript(stack, "conflict")).messages.map(textOf)).toEqual(["say a", "a (demo)"]);
  });

  test("a page that comes back with its cursor gets what it missed, without deltas of ended turns", async () => {
    await post(stack, "back", "say one");
    await agentEnd("back");
    const first = await stack.trigger<{ seq: number; epoch: string; items: object[] }>("ui::subscribe", {
      browser_id: "b9",
      session_id: "back",
    });
    expect(first.items.length).toBeGreaterThan(0);
    await post(stack, "back", "say two");
    await agentEnd("back", 2);
    const { seq: since, epoch } = first;
    const missed = await stack.trigger<{ gap: boolean; items: { event: AgentEvent; seq: number }[] }>("ui::subscribe", {
      browser_id: "b9",
      session_id: "back",
      since,
      epoch,
    });
    expect(missed.gap).toBe(false);
    expect(missed.items.every((item) => item.seq > since)).toBe(true);
    expect(JSON.stringify(missed.items)).toContain("two (demo)");
    expect(missed.items.filter((item) => item.event.type === "message_update")).toEqual([]);
  });
});
