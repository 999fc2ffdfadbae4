// The rules of the catalogue: keys, which row counts, what a capability means. Pure.
import type { Model } from "@iii/contracts";

export const SCOPE = "models";

export function keyOf(provider: string, id: string): string {
  return `models:${provider}:${id}`;
}

/** Stored rows first, then the seed rows that nothing stored replaces. */
export function merged(stored: readonly Model[], seed: readonly Model[]): Model[] {
  const seen = new Set(stored.map((model) => keyOf(model.provider, model.id)));
  return [...stored, ...seed.filter((model) => !seen.has(keyOf(model.provider, model.id)))];
}

const CAPABILITY: Readonly<Record<string, (model: Model) => boolean | undefined>> = {
  thinking: (model) => model.supports_thinking,
  "thinking:minimal": (model) => model.supports_thinking,
  "thinking:low": (model) => model.supports_thinking,
  "thinking:medium": (model) => model.supports_thinking,
  "thinking:high": (model) => model.supports_thinking,
  "thinking:xhigh": (model) => model.supports_xhigh,
  tools: (model) => model.supports_tools,
  vision: (model) => model.supports_vision,
  cache: (model) => model.supports_cache,
};

/** Whether a model has a capability. An unknown capability is one that no model has. */
export function supports(model: Model, capability: string): boolean {
  const check = Object.hasOwn(CAPABILITY, capability) ? CAPABILITY[capability] : undefined;
  return check?.(model) ?? false;
}
