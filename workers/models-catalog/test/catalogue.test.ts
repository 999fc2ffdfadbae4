// The catalogue's rules, without a bus.
import { Model } from "@iii/contracts";
import { describe, expect, test } from "vitest";
import { merged, supports } from "../src/catalogue.ts";
import { SEED } from "../src/seed.ts";

const row = (id: string, extra: Partial<Model> = {}): Model => ({
  id,
  provider: "p",
  api: "a",
  display_name: id,
  context_window: 10,
  ...extra,
});

test("every seed row is a model and none stands twice", () => {
  for (const model of SEED) expect(Model.parse(model)).toEqual(model);
  expect(new Set(SEED.map((model) => `${model.provider}:${model.id}`)).size).toBe(SEED.length);
});

test("a stored row replaces the seed's, the rest of the seed stays", () => {
  const stored = row("x", { display_name: "mine" });
  expect(merged([stored], [row("x"), row("y")])).toEqual([stored, row("y")]);
});

describe("capabilities", () => {
  const model = row("x", { supports_thinking: true, supports_tools: true, supports_vision: false });
  test.each([
    ["thinking", true],
    ["thinking:high", true],
    ["thinking:xhigh", false],
    ["tools", true],
    ["vision", false],
    ["cache", false],
    ["telepathy", false],
    ["toString", false],
  ])("%s: %s", (capability, expected) => expect(supports(model, capability)).toBe(expected));
});
