// The demo provider on the real bus: channel, terminal event, model rows.
import { type AssistantMessageEvent, Model, providerComplete, providerStream } from "@iii/contracts";
import { type TestBus, testBus } from "@iii/engine/testing";
import { defineFunction, defineWorker } from "@iii/sdk";
import { until } from "@iii/sdk/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { worker } from "../src/register.ts";

/** A catalogue of another make, in memory. */
function catalogue(rows: Map<string, Model>) {
  const get = defineFunction({
    id: "models::get",
    about: "One model.",
    input: z.object({ provider: z.string(), model_id: z.string() }),
    output: Model.nullable(),
  });
  const register = defineFunction({ id: "models::register", about: "Add a model.", input: Model, output: z.object({}) });
  return defineWorker({
    name: "catalogue",
    config: z.object({}),
    register(on) {
      on(get, ({ provider, model_id }) => rows.get(`${provider}:${model_id}`) ?? null);
      on(register, (model) => {
        rows.set(`${model.provider}:${model.id}`, model);
        return {};
      });
    },
  });
}

const stream = providerStream("scripted");
const say = (text: string) => [{ role: "user" as const, content: [{ type: "text" as const, text }], timestamp: 1 }];

/** Reads a whole stream the way a turn does. */
async function read(bus: TestBus, model: string, text: string, signal?: AbortSignal) {
  const iii = await bus.connect("reader");
  const channel = await iii.createChannel();
  const answering = iii.trigger(
    stream,
    { model, messages: say(text), writer_ref: channel.writerRef },
    signal === undefined ? {} : { signal },
  );
  const events: AssistantMessageEvent[] = [];
  for await (const frame of channel.reader) events.push(JSON.parse(String(frame)));
  return { events, answer: await answering.catch((thrown: unknown) => thrown) };
}

test("a stream starts, runs and ends once over the channel, and then the function answers", async () => {
  await using bus = await testBus([worker]);
  const { events, answer } = await read(bus, "demo", "say hello there");
  expect(events.map((event) => event.type)).toEqual([
    "start",
    "text_start",
    "text_delta",
    "text_delta",
    "text_delta",
    "text_end",
    "usage",
    "stop",
    "done",
  ]);
  expect(answer).toEqual({ ok: true, status: "end" });
});

test("bytes on the channel grow with the text, not with its square", async () => {
  await using bus = await testBus([worker]);
  const size = async (words: number) => JSON.stringify((await read(bus, "demo", `say ${"word ".repeat(words)}`)).events).length;
  const [one, four] = [await size(100), await size(400)];
  expect(four).toBeLessThan(one * 4.5);
});

test("the provider tells the catalogue its models, keeps a corrected row, and uses that row's price", async () => {
  const rows = new Map<string, Model>();
  await using bus = await testBus([catalogue(rows), worker]);
  await until(() => rows.has("scripted:demo"), "the row");
  const row = rows.get("scripted:demo");
  if (row === undefined) throw new Error("no row");
  rows.set("scripted:demo", { ...row, pricing: { input_per_1m: 1_000_000, output_per_1m: 0 } });
  await bus.crash();
  const { usage } = await bus.call(providerComplete("scripted"), { model: "demo", messages: say("say hi") });
  expect(usage?.cost_usd).toBe(usage?.input);
});

test("a catalogue that comes later is told as well", async () => {
  const rows = new Map<string, Model>();
  await using bus = await testBus([worker, catalogue(rows)]);
  await bus.clock.advance(1_000);
  await until(() => rows.has("scripted:demo"), "the row");
});

test("an unknown model ends the stream with an error that says what to do", async () => {
  await using bus = await testBus([catalogue(new Map()), worker]);
  const { events, answer } = await read(bus, "demo-9", "say hi");
  expect(events.at(-1)).toMatchObject({
    type: "error",
    error: { error_kind: "permanent", error_message: expect.stringContaining("models::list") },
  });
  expect(answer).toEqual({ ok: false, status: "error" });
});

test("a caller that aborts ends a slow answer at once", async () => {
  await using bus = await testBus([worker]);
  const abort = new AbortController();
  const reading = read(bus, "demo", "slow 60000 a b c", abort.signal);
  await bus.settle();
  abort.abort();
  const { events } = await reading;
  expect(events.at(-1)).toMatchObject({ type: "error", error: { stop_reason: "aborted" } });
});

test("a reader that goes away ends a slow answer at once", async () => {
  await using bus = await testBus([worker]);
  const iii = await bus.connect("reader");
  const channel = await iii.createChannel();
  const answering = iii.trigger(
    stream,
    { model: "demo", messages: say("slow 60000 a b c"), writer_ref: channel.writerRef },
    { timeout_ms: 0 },
  );
  await bus.settle();
  await bus.clock.advance(15_000);
  for await (const frame of channel.reader) if (String(frame).includes("text_delta")) break;
  expect(await answering).toEqual({ ok: false, status: "aborted" });
});
