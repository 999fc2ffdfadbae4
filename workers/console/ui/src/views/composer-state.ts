// The composer's memory: one draft per session, and the model and mode that were chosen last. Kept in this browser.
import type { Model } from "@iii/contracts";
import { effect, type Signal, signal } from "@preact/signals";
import type { Choice } from "../start-turn.ts";

const drafts = new Map<string, Signal<string>>();

/** The text that stands in a session's composer. */
export function draft(session_id: string): Signal<string> {
  const known = drafts.get(session_id);
  if (known !== undefined) return known;
  const key = `iii.draft.${session_id}`;
  const made = signal(localStorage.getItem(key) ?? "");
  drafts.set(session_id, made);
  effect(() => {
    if (made.value === "") localStorage.removeItem(key);
    else localStorage.setItem(key, made.value);
  });
  return made;
}

export const modelKey = signal(localStorage.getItem("iii.model") ?? "");
export const mode = signal<Choice["mode"]>("agent");
effect(() => {
  if (modelKey.value !== "") localStorage.setItem("iii.model", modelKey.value);
});

/** The model that runs: the one chosen, else the first one that costs nothing, else the first. */
export function chosen(models: readonly Model[]): Choice {
  const named = models.find((model) => keyOf(model) === modelKey.value);
  const free = models.find((model) => model.pricing !== undefined && model.pricing.input_per_1m === 0 && model.pricing.output_per_1m === 0);
  const pick = named ?? free ?? models[0];
  return { provider: pick?.provider ?? "", model: pick?.id ?? "", mode: mode.value };
}

/** A model's key in the picker. */
export function keyOf(model: { provider: string; id: string }): string {
  return `${model.provider}/${model.id}`;
}
