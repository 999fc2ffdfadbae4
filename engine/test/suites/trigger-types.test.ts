// What the official suites ask of trigger types and of their providers' and consumers' lives.
import { describe, expect, test, vi } from "vitest";
import { type Client, GENERATIONS, suite } from "./clients.ts";

const TYPE = { id: "suite::type", description: "a type of the suite" };
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 2_000, interval: 5 });

interface Heard {
  readonly bound: { id: string; function_id: string; config: unknown }[];
  readonly unbound: string[];
}

/** Makes this client the type's provider, and notes what it is told. */
function provide(client: Client): Heard {
  const heard: Heard = { bound: [], unbound: [] };
  client.registerTriggerType(TYPE, {
    registerTrigger: async ({ id, function_id, config }) => void heard.bound.push({ id, function_id, config }),
    unregisterTrigger: async ({ id }) => void heard.unbound.push(id),
  });
  return heard;
}

function bind(client: Client): void {
  client.registerFunction("suite::on", async (data) => ({ on: data.n }));
  client.registerTrigger({ type: TYPE.id, function_id: "suite::on", config: { every: 5 } });
}

describe.each(GENERATIONS)("P7.4 $name", (generation) => {
  test("a provider hears of a binding once, fires it by calling its function, and hears of its end once", async () => {
    const { iii, client } = await suite(generation);
    const heard = provide(iii);
    const consumer = client();
    bind(consumer);
    await eventually(() => expect(heard.bound).toMatchObject([{ function_id: "suite::on", config: { every: 5 } }]));
    expect(await iii.trigger({ function_id: heard.bound[0]?.function_id ?? "", payload: { n: 1 } })).toEqual({ on: 1 });
    await consumer.shutdown();
    if (generation.hearsOfBindings) await eventually(() => expect(heard.unbound).toEqual([heard.bound[0]?.id]));
    expect(heard.bound).toHaveLength(1);
  });

  test("a trigger waits for its type without an error, and is bound when the provider comes", async () => {
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    try {
      const { iii, client, settled } = await suite(generation);
      bind(iii);
      await settled();
      const heard = provide(client());
      await eventually(() => expect(heard.bound).toMatchObject([{ function_id: "suite::on" }]));
      expect(said.mock.calls.flat().join(" ")).not.toContain("registration failed");
    } finally {
      said.mockRestore();
    }
  });

  test("a provider that leaves and comes back is told of the same binding under the same id", async () => {
    const { iii, client } = await suite(generation);
    const first = client();
    const before = provide(first);
    bind(iii);
    await eventually(() => expect(before.bound).toHaveLength(1));
    await first.shutdown();
    const after = provide(client());
    await eventually(() => expect(after.bound.map(({ id }) => id)).toEqual(before.bound.map(({ id }) => id)));
  });

  test("a new provider takes the type over from one that still lives", async () => {
    const { iii, client } = await suite(generation);
    const before = provide(client());
    bind(iii);
    await eventually(() => expect(before.bound).toHaveLength(1));
    const after = provide(client());
    await eventually(() => expect(after.bound).toHaveLength(1));
    expect(after.bound[0]?.id).toBe(before.bound[0]?.id);
  });

  test("the type is listed while its provider lives", async () => {
    const { iii, client, call } = await suite(generation);
    const provider = client();
    provide(provider);
    await provider.trigger({ function_id: "state::list_groups", payload: {} });
    const info = () => iii.trigger({ function_id: "engine::triggers::info", payload: { id: TYPE.id } });
    expect(await info()).toMatchObject({ id: TYPE.id, description: TYPE.description });
    await provider.shutdown();
    await vi.waitFor(() => expect(call("engine::triggers::info", { id: TYPE.id })).rejects.toThrow(), { timeout: 2_000, interval: 5 });
  });
});
