// models::* on the real bus.
import { testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { modelsGet, modelsList, modelsRegister, modelsSupports } from "../src/contract.ts";
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
  expect((await bus.call(modelsList, { provider: "acme", capability: "tools" })).models).toEqual([model]);
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
