import type { Model } from "@iii/contracts";
import { expect, test } from "vitest";
import { keyOf, modelsIn, offers, pick, providersIn, type Ready } from "../ui/src/model/offer.ts";

const model = (provider: string, more: Partial<Model> = {}): Model => ({
  id: "m",
  provider,
  api: "x",
  display_name: provider.toUpperCase(),
  context_window: 1,
  ...more,
});
const FREE = model("free", { needs_key: false });
const PAID = model("paid", { needs_key: true });
const OTHER = model("other", { needs_key: true });
const served = new Set(["free", "paid"]);

function picked(ready: Ready, chosen = "", models: readonly Model[] = [OTHER, FREE, PAID]): string | undefined {
  return pick(offers(models, ready), chosen, ready.keys)?.provider;
}

test("U44 what can run comes first; the rest says why not and what to do", () => {
  const list = offers([OTHER, PAID, FREE], { served, keys: new Map([["paid", false]]) });
  expect(list.map((one) => [one.model.provider, one.why])).toEqual([
    ["free", undefined],
    ["other", "no worker"],
    ["paid", "no key"],
  ]);
  for (const one of list.slice(1)) expect(one.way).toContain(one.model.provider);
});

test.each<[string, Ready, string, string | undefined]>([
  ["U44 a provider with a key comes before a free model", { served, keys: new Map([["paid", true]]) }, "", "paid"],
  ["without any key the model that needs none", { served, keys: new Map([["paid", false]]) }, "", "free"],
  ["the chosen one, when it can run", { served, keys: new Map([["paid", true]]) }, "free/m", "free"],
  ["a chosen one that cannot run is not taken", { served, keys: new Map([["paid", false]]) }, "paid/m", "free"],
  ["nothing is held against a model when nobody could be asked", { keys: new Map() }, "other/m", "other"],
  ["nothing can run", { served: new Set(), keys: new Map() }, "", undefined],
])("%s", (_title, ready, chosen, expected) => {
  expect(picked(ready, chosen)).toBe(expected);
});

test("U43 without a catalogue the providers' own functions name the models", () => {
  expect(modelsIn({ models: [FREE, { id: 1 }, null] }).map(keyOf)).toEqual(["free/m"]);
  for (const odd of [null, undefined, 1, "x", {}, { models: {} }]) expect(modelsIn(odd)).toEqual([]);
  expect([...providersIn(["provider::a::stream", "provider::a::complete", "provider::x::y::stream", "state::get"])]).toEqual(["a", "x::y"]);
});
