// Which models can run now: a worker serves their provider, and there is a key where one is needed. Knows no provider by name. Pure.
import type { Model } from "@iii/contracts";
import type { OfferedModel } from "./contract.ts";

/** What is known of the providers; undefined where nobody could be asked, and then nothing is held against a model. */
export interface Readiness {
  readonly served: ReadonlySet<string> | undefined;
  readonly keys: ReadonlyMap<string, { readonly configured: boolean; readonly way?: string | undefined }>;
}

export function offer(model: Model, { served, keys }: Readiness): OfferedModel {
  const { provider } = model;
  if (served !== undefined && !served.has(provider)) {
    return { ...model, can_run: false, why_not: "no_worker", way: `No worker serves provider '${provider}': enable one in config.yaml.` };
  }
  const key = model.needs_key === false ? undefined : keys.get(provider);
  if (model.needs_key === true && key?.configured === false) {
    return { ...model, can_run: false, why_not: "no_key", way: key.way ?? `No key for ${provider}: call auth::set_token.` };
  }
  return { ...model, can_run: true };
}

/** The first that can run of a provider with a key, providers by name; else the first that is known to need none. */
export function choose(offered: readonly OfferedModel[], { served, keys }: Readiness): OfferedModel | undefined {
  const able = offered.filter(({ can_run, provider }) => can_run && served?.has(provider) === true);
  const keyed = able.filter(({ provider }) => keys.get(provider)?.configured === true);
  const first = [...new Set(keyed.map(({ provider }) => provider))].sort()[0];
  return keyed.find(({ provider }) => provider === first) ?? able.find(({ needs_key }) => needs_key === false);
}
