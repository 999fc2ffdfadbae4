// K3: effects share no fate, runs form a line, one layer asks the model, and nothing that was paid for is forgotten.
import { type AssistantMessageEvent, providerStream } from "@iii/contracts";
import { testBus } from "@iii/engine/testing";
import { type Call, defineWorker, silentLogger, startWorker, systemRandom } from "@iii/sdk";
import { sessionMessages } from "@iii/worker-session/contract";
import { expect, test } from "vitest";
import { z } from "zod";
import { worker as harness } from "../../harness/src/register.ts";
import { worker as session } from "../../session/src/register.ts";
import { runAbort } from "../src/contract.ts";
import { orchestrator } from "../src/register.ts";
import { call, ended, gate, results, stack, start, text, tools, toyProvider, transcript, until, user } from "./rig.ts";

type Bus = Awaited<ReturnType<typeof stack>>;

/** The real session worker on a connection of its own, which can go away and come back. */
async function sessionOn(bus: Bus) {
  const iii = await bus.connect("session");
  const { clock } = bus;
  await startWorker(session, { iii, clock, random: systemRandom, log: silentLogger, config: {}, root: "." });
  await bus.settle();
  return iii;
}

test("K3.1 W3 W5 with the session worker away an append waits, and tools run to their own results", async () => {
  const batch = Array.from({ length: 20 }, (_, n) => call(n === 0 ? "t::slow2" : "t::pure", { n }, `c${n}`));
  const provider = toyProvider((messages) => (results(messages).length === 0 ? batch : [text("done")]));
  const toy = tools();
  await using bus = await stack([provider.worker, gate().worker, toy.worker], { transcript: "tree", max_step_failures: 1_000 });
  const release = Promise.withResolvers<void>();
  const tool = await bus.connect("slow-tool");
  tool.registerFunction(
    "t::slow2",
    async () => {
      await release.promise;
      return "slow but done";
    },
    { metadata: { effect: "at_most_once", parallel: true, timeout_ms: 600_000 } },
  );
  const first = await sessionOn(bus);
  await start(bus, "s1", [user("x".repeat(70_000))]);
  for (let tick = 0; tick < 100 && toy.ledger.length < 7; tick += 1) await bus.clock.advance(50);
  await first.close({ drain_ms: 0 });
  await bus.clock.advance(20_000);
  expect(toy.ledger).toHaveLength(19);
  release.resolve();
  await bus.clock.advance(5_000);
  await sessionOn(bus);
  expect(await until(bus, "s1", ended, 600)).toMatchObject({ state: "stopped", stop_reason: "end" });
  const { messages } = await bus.call(sessionMessages, { session_id: "s1" });
  const told = results(messages.map((entry) => entry.message));
  expect(told).toHaveLength(20);
  expect(told.filter((result) => result.is_error)).toEqual([]);
  expect(told[0]?.content).toEqual([text("slow but done")]);
});

test.each([60, 200])(
  "K3.3 %i harness::trigger at once on one session are all kept, in order of arrival, whoever dies",
  async (count) => {
    const provider = toyProvider((messages) => [text(`answer ${messages.length}`)]);
    await using bus = await testBus([provider.worker, harness, { worker: orchestrator(), config: { startup_grace_ms: 0 } }]);
    const post = (n: number) =>
      bus.call<{ body: { started: boolean; queued?: boolean } }>("harness::trigger", {
        session_id: "s1",
        message_id: `m${n}`,
        payload: { provider: "toy", model: "m", messages: [user(`question ${n}`)], if_busy: "queue" },
      });
    const numbers = Array.from({ length: count }, (_, n) => n);
    const answers = await Promise.all(numbers.map(post));
    expect(answers.filter(({ body }) => body.started || body.queued === true)).toHaveLength(count);
    await bus.crash();
    await until(bus, "s1", (view) => ended(view) && view.message_id === `m${count - 1}`, 600);
    const asked = (await transcript(bus, "s1")).flatMap((message) =>
      message.role === "user" && message.content[0]?.type === "text" ? [message.content[0].text] : [],
    );
    expect(asked).toEqual(numbers.map((n) => `question ${n}`));
  },
  60_000,
);

/** A provider that sends what it is told to, and when. */
function script(play: (send: (event: AssistantMessageEvent) => Promise<void>, c: Call) => Promise<void>) {
  let asked = 0;
  const worker = defineWorker({
    name: "script-provider",
    config: z.object({}),
    register(on, { iii }) {
      on(providerStream("toy"), async (request, c) => {
        asked += 1;
        const writer = iii.openWriter(request.writer_ref);
        await play((event) => writer.send(JSON.stringify(event)), c);
        await writer.close();
        return { ok: true };
      });
    },
  });
  return { worker, asked: () => asked };
}

const cancelled = (c: Call) => new Promise<void>((resolve) => c.signal.addEventListener("abort", () => resolve(), { once: true }));
const said = (delta: string): AssistantMessageEvent => ({ type: "text_delta", block: 0, delta });
const answer = { role: "assistant" as const, content: [text("hello")], model: "m", provider: "toy", timestamp: 5 };

test("K3.4 an aborted answer keeps its text and an estimate of what it cost, and no price that nobody knows", async () => {
  const provider = toyProvider(() => "hang");
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", () => provider.seen.length === 1);
  await bus.call(runAbort, { session_id: "s1" });
  await until(bus, "s1", ended);
  const last = (await transcript(bus, "s1")).at(-1);
  expect(last).toMatchObject({ stop_reason: "aborted", content: [text("thinking about it")], usage: { output: 5, estimated: true } });
  expect(last?.role === "assistant" && (last.usage?.input ?? 0) > 100).toBe(true);
  expect(last?.role === "assistant" && last.usage?.cost_usd).toBeUndefined();
});

test("K3.4 case 65 what a cancelled provider still says of its cost is taken", async () => {
  const usage = { input: 70, output: 7, cost_usd: 0.5 };
  const provider = script(async (send, c) => {
    await send(said("half"));
    await cancelled(c);
    await send({ type: "error", error: { ...answer, content: [text("half")], stop_reason: "aborted", usage } });
  });
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", () => provider.asked() === 1);
  await bus.call(runAbort, { session_id: "s1" });
  expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "aborted" });
  expect((await transcript(bus, "s1")).at(-1)).toMatchObject({ stop_reason: "aborted", usage });
});

test.each([
  [
    "a whole answer without usage",
    async (send: (event: AssistantMessageEvent) => Promise<void>) => send({ type: "done", message: { ...answer, stop_reason: "end" } }),
  ],
  ["a stream that broke off", (send: (event: AssistantMessageEvent) => Promise<void>) => send(said("hello"))],
  [
    "a stream that told its input and broke off",
    async (send: (event: AssistantMessageEvent) => Promise<void>) => {
      await send({ type: "usage", usage: { input: 4_711 } });
      await send(said("hello"));
    },
  ],
] as const)("K3.4 the cost of %s is estimated", async (what, play) => {
  const provider = script((send) => play(send));
  await using bus = await stack([provider.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", ended);
  const last = (await transcript(bus, "s1")).at(-1);
  const usage = last?.role === "assistant" ? last.usage : undefined;
  expect(usage).toMatchObject({ estimated: true, input: what.includes("told") ? 4_711 : expect.any(Number) });
  expect(usage?.output).toBeGreaterThan(0);
  expect(usage).not.toHaveProperty("cost_usd");
});

test("K3.5 an answer may stream for as long as it says something", async () => {
  await using bus = await stack(
    [
      script(async (send) => {
        for (let n = 0; n < 20; n += 1) {
          await new Promise<void>((resolve) => void bus.clock.setTimer(resolve, 100_000));
          await send(said("word "));
        }
        await send({ type: "done", message: { ...answer, stop_reason: "end" } });
      }).worker,
    ],
    { model_timeout_ms: 300_000 },
  );
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended, 3_000)).toMatchObject({ state: "stopped", stop_reason: "end" });
}, 60_000);

test("K3.5 an answer that falls silent ends, with what was said", async () => {
  const provider = script(async (send, c) => {
    await send(said("one word"));
    await cancelled(c);
  });
  await using bus = await stack([provider.worker], { model_timeout_ms: 10_000 });
  await start(bus, "s1", [user("go")]);
  const view = await until(bus, "s1", ended);
  expect(view).toMatchObject({ stop_reason: "error", error: { message: expect.stringContaining("said nothing for 10000 ms") } });
  expect((await transcript(bus, "s1")).at(-1)).toMatchObject({ content: [text("one word")] });
  expect(provider.asked()).toBe(1);
});

test("K3.2 a provider whose process dies before it says anything is asked once more, by nobody else", async () => {
  await using bus = await stack([]);
  let asked = 0;
  const serve = async () => {
    const iii = await bus.connect("provider");
    iii.registerFunction("provider::toy::stream", async () => {
      asked += 1;
      void iii.close({ drain_ms: 0 });
      await new Promise<void>(() => undefined);
    });
    await bus.settle();
  };
  await serve();
  await start(bus, "s1", [user("go")]);
  await bus.clock.advance(1_000);
  await serve();
  expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "error", turn_count: 1 });
  expect(asked).toBe(2);
});

test("a first turn is in the transcript while it runs, and a short later one arrives in one batch", async () => {
  const batches: number[] = [];
  const provider = toyProvider((messages, nth) => (nth === 3 ? [call("t::once", {}, "c1")] : [text(`to ${messages.length}`)]));
  await using bus = await stack([provider.worker, gate().worker, tools().worker], { transcript: "tree" });
  const tree = await bus.connect("counting-session");
  const kept: unknown[] = [];
  tree.registerFunction("session-tree::messages", () => ({ messages: kept }));
  tree.registerFunction("session-tree::append", () => ({ entry_id: "x" }));
  tree.registerFunction("session-tree::append_batch", (input) => {
    const { entry_ids, messages } = input as { entry_ids: string[]; messages: unknown[] };
    batches.push(messages.length);
    kept.push(...messages.map((message, n) => ({ entry_id: entry_ids[n], message })));
    return { entry_ids };
  });
  await bus.settle();
  await start(bus, "s1", [user("one")], { message_id: "m1" });
  await until(bus, "s1", ended);
  expect(batches).toEqual([1, 1]);
  await start(bus, "s1", [user("two")], { message_id: "m2" });
  await until(bus, "s1", (view) => ended(view) && view.message_id === "m2");
  await start(bus, "s1", [user("three")], { message_id: "m3" });
  await until(bus, "s1", (view) => ended(view) && view.message_id === "m3");
  expect(batches).toEqual([1, 1, 2, 4]);
});
