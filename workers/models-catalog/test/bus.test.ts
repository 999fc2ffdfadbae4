// models::* on the real bus.

import { providerStream } from "@iii/contracts";
import { testBus } from "@iii/engine/testing";
import { defineWorker } from "@iii/sdk";
import { authStatus } from "@iii/worker-auth-credentials/contract";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { modelsDefault, modelsGet, modelsList, modelsRegister, modelsSupports } from "../src/contract.ts";
import { worker } from "../src/register.ts";

const model = { id: "new-1", provider: "acme", api: "acme", display_name: "New", context_window: 1000, supports_tools: true };

test("a registered model is listed, found, and survives a crash; reading writes nothing", async () => {
  await using bus = await testBus([worker]);
  const before = (await bus.call(modelsList, {})).models.length;
  expect(await bus.call("state::list", { scope: "models" })).toEqual([]);
  expect(await bus.call(modelsRegister, model)).toEqual({ key: "models:acme:new-1", registered: true });
  await bus.crash();
  expect(await bus.call(modelsGet, { provider: "acme", model_id: "new-1" })).toEqual(model);
  expect((await bus.call(modelsList, {})).models).toHaveLength(before + 1);
  expect((await bus.call(modelsList, { provider: "acme", capability: "tools" })).models).toMatchObject([model]);
});

test("unknown models and capabilities are answers, not errors", async () => {
  await using bus = await testBus([worker]);
  expect((await bus.call(modelsGet, { provider: "acme", model_id: "none" })) ?? null).toBeNull();
  expect(await bus.call(modelsSupports, { provider: "acme", model_id: "none", capability: "tools" })).toEqual({ supported: false });
  expect(await bus.call(modelsSupports, { provider: "google", model_id: "gemini-2-5-pro", capability: "telepathy" })).toEqual({
    supported: false,
  });
  expect(await bus.call(modelsGet, { provider: "lmstudio", model_id: "whatever" })).toMatchObject({ id: "lmstudio-local" });
});

test("a row with a wrong field is refused by its name", async () => {
  await using bus = await testBus([worker]);
  await expect(bus.call(modelsRegister, { ...model, context_window: -1 })).rejects.toMatchObject({
    code: "invalid_payload",
    message: expect.stringContaining("context_window"),
  });
});

test.each([
  ["a text", "x"],
  ["null-like", {}],
  ["a window that is none", { ...model, id: "bad", context_window: -1 }],
  ["another version's", { ...model, id: "bad", pricing: { usd: 1 } }],
])("K2.7 a row that is %s is left out, and the list goes on", async (_title, value) => {
  await using bus = await testBus([worker]);
  await bus.call(modelsRegister, model);
  await bus.call("state::set", { scope: "models", key: "models:acme:bad", value });
  expect((await bus.call(modelsList, { provider: "acme" })).models).toMatchObject([{ id: "new-1" }]);
  await expect(bus.call(modelsGet, { provider: "acme", model_id: "bad" })).rejects.toMatchObject({
    code: "store_corrupt",
    message: expect.stringContaining("models::register"),
  });
});

describe("what can run", () => {
  /** Serves providers, and answers for keys; without `keys` there is no such layer. */
  const stack = (served: readonly string[], keys?: Readonly<Record<string, boolean>>) =>
    defineWorker({
      name: "others",
      config: z.object({}),
      register(on) {
        for (const name of served) on(providerStream(name), () => ({ ok: true }));
        if (keys !== undefined) on(authStatus, ({ provider }) => ({ configured: keys[provider] === true, way: `set ${provider}'s key` }));
      },
    });
  const row = (provider: string, id: string, needs_key?: boolean) => ({
    ...model,
    provider,
    id,
    ...(needs_key === undefined ? {} : { needs_key }),
  });
  async function busWith(served: readonly string[], keys: Readonly<Record<string, boolean>> | undefined) {
    const bus = await testBus([stack(served, keys), worker]);
    const rows = [
      row("demo", "free", false),
      row("beta", "b1", true),
      row("beta", "b2", true),
      row("acme", "a1", true),
      row("own", "o", undefined),
    ];
    for (const one of rows) await bus.call(modelsRegister, one);
    return bus;
  }
  test.each([
    ["nobody serves it", [], {}, "a1", { can_run: false, why_not: "no_worker", way: expect.stringContaining("'acme'") }],
    ["there is no key", ["acme"], {}, "a1", { can_run: false, why_not: "no_key", way: "set acme's key" }],
    ["there is a key", ["acme"], { acme: true }, "a1", { can_run: true }],
    ["it needs no key", ["demo"], {}, "free", { can_run: true }],
    ["nobody said whether it needs one", ["own"], {}, "o", { can_run: true }],
    ["nobody can be asked for keys", ["acme"], undefined, "a1", { can_run: true }],
  ])("U45 a model says whether it can run, and why not: %s", async (_title, served, keys, id, expected) => {
    await using bus = await busWith(served, keys);
    const { models } = await bus.call(modelsList, {});
    expect(models.find((one) => one.id === id)).toMatchObject(expected);
  });
  test.each([
    ["only the demo", ["demo", "acme", "beta"], {}, "free"],
    ["one key", ["demo", "acme", "beta"], { beta: true }, "b1"],
    ["two keys: providers by name", ["demo", "acme", "beta"], { beta: true, acme: true }, "a1"],
    ["a key, and nobody serves it", ["demo", "beta"], { acme: true }, "free"],
    ["no layer for keys", ["demo", "acme"], undefined, "free"],
    ["nothing that is known to run", ["acme", "own"], {}, undefined],
    ["nothing at all", [], {}, undefined],
  ])("U44 the default is of the first provider with a key, else needs none: %s", async (_title, served, keys, id) => {
    await using bus = await busWith(served, keys);
    expect((await bus.call(modelsDefault, {}))?.id).toBe(id);
  });
});
