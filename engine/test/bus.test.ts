import { functionsList, stateGet, stateSet, workersList } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { defineFunction, defineWorker } from "@iii/sdk";
import { expect, test } from "vitest";
import { z } from "zod";

const shout = defineFunction({
  id: "demo::shout",
  about: "Say it loud.",
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
});

const demo = defineWorker({
  name: "demo",
  config: z.object({ mark: z.string().default("!") }),
  register(on, { config }) {
    on(shout, ({ text }) => ({ text: text.toUpperCase() + config.mark }));
  },
});

test("a worker's function is called over the bus and its answer comes back", async () => {
  await using bus = await testBus([{ worker: demo, config: { mark: "?" } }]);
  expect(await bus.call(shout, { text: "hi" })).toEqual({ text: "HI?" });
});

test("an unknown function and a bad payload answer with a code", async () => {
  await using bus = await testBus([demo]);
  await expect(bus.call("demo::nobody", {})).rejects.toMatchObject({ code: "function_not_found" });
  await expect(bus.call("demo::shout", { text: 3 })).rejects.toMatchObject({ code: "invalid_payload" });
  await expect(bus.call("state::set", { scope: "a" })).rejects.toMatchObject({ code: "deserialization_error" });
});

test("announced workers and their functions are in the catalogue", async () => {
  await using bus = await testBus([demo]);
  const { functions } = await bus.call(functionsList, { prefix: "demo::" });
  expect(functions).toEqual([expect.objectContaining({ function_id: "demo::shout", worker_name: "demo", description: "Say it loud." })]);
  const { workers } = await bus.call(workersList, { runtime: "node" });
  expect(workers.map((worker) => worker.name)).toEqual(["demo"]);
});

test("acknowledged state survives a crash of everything", async () => {
  await using bus = await testBus([demo]);
  await bus.call(stateSet, { scope: "s", key: "k", value: { n: 1 } });
  await bus.crash();
  expect(await bus.call(stateGet, { scope: "s", key: "k" })).toEqual({ n: 1 });
  expect(await bus.call(shout, { text: "a" })).toEqual({ text: "A!" });
});

test("a published value reaches every subscriber, and one that leaves takes only itself away", async () => {
  await using bus = await testBus([]);
  const seen: string[] = [];
  const first = await bus.connect("first");
  const second = await bus.connect("second");
  for (const [iii, name] of [
    [first, "first"],
    [second, "second"],
  ] as const) {
    iii.registerFunction(`sub::${name}`, (data) => void seen.push(`${name}:${String(data)}`));
    iii.registerTrigger({ type: "subscribe", function_id: `sub::${name}`, config: { topic: "t" } });
  }
  await bus.settle();
  await bus.call("publish", { topic: "t", data: "a" });
  await bus.settle();
  await first.close();
  await bus.settle();
  await bus.call("publish", { topic: "t", data: "b" });
  await bus.settle();
  expect(seen).toEqual(["first:a", "second:a", "second:b"]);
});
