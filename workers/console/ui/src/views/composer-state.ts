// The composer's memory: one draft per session, and the model and mode that were chosen last. Kept in this browser.
import { effect, type Signal, signal } from "@preact/signals";
import { type Offer, pick } from "../model/offer.ts";
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

/** What a turn is started with. Without a model that is known to run, whoever starts turns falls back to its own default. */
export function choice(list: readonly Offer[], preferred: string | undefined): Choice {
  const model = pick(list, modelKey.value, preferred);
  return { provider: model?.provider ?? "", model: model?.id ?? "", mode: mode.value };
}
