import type { Model } from "@iii/contracts";
import { expect, test } from "vitest";
import { keyOf, modelsIn, offers, pick } from "../ui/src/model/offer.ts";

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
const ABSENT = { ...model("absent"), can_run: false, why_not: "no_worker", way: "start provider-absent" };

test("U44 what can run comes first; the rest says why not and what to do", () => {
  const list = offers([ABSENT, { ...PAID, can_run: false }, { ...FREE, can_run: true }]);
  expect(list.map((one) => [one.model.provider, one.why, one.way])).toEqual([
    ["free", undefined, undefined],
    ["absent", "no worker", "start provider-absent"],
    ["paid", "cannot run", undefined],
  ]);
});

test.each<[string, Parameters<typeof offers>[0], string, string | undefined, string | undefined]>([
  ["U44 the catalogue's default, such as a provider with a key, comes before a free model", [FREE, PAID], "", "paid/m", "paid"],
  ["without a default the model that needs no key", [PAID, FREE], "", undefined, "free"],
  ["the chosen one, when it can run", [FREE, PAID], "free/m", "paid/m", "free"],
  ["a chosen one that cannot run is not taken", [ABSENT, FREE], "absent/m", undefined, "free"],
  ["a catalogue that does not say what can run holds nothing against a model", [PAID], "", undefined, "paid"],
  ["nothing can run", [ABSENT], "absent/m", "absent/m", undefined],
])("%s", (_title, models, chosen, preferred, expected) => {
  expect(pick(offers(models), chosen, preferred)?.provider).toBe(expected);
});

test("U43 without a catalogue the providers' own functions name the models", () => {
  expect(modelsIn({ models: [FREE, { id: 1 }, null] }).map(keyOf)).toEqual(["free/m"]);
  for (const odd of [null, undefined, 1, "x", {}, { models: {} }]) expect(modelsIn(odd)).toEqual([]);
});
