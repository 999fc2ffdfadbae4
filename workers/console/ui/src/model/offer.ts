// Which models can run now, and why the others cannot. Knows no model and no provider by name. Pure.
import type { Model } from "@iii/contracts";

/** A model of the picker. `why` stands where it cannot run, with the way to change that. */
export interface Offer {
  readonly model: Model;
  readonly why?: string;
  readonly way?: string;
}

/** What is known of the providers; undefined where nobody could be asked, and then nothing is held against a model. */
export interface Ready {
  /** Names of providers that a worker serves now. */
  readonly served?: ReadonlySet<string> | undefined;
  /** Whether there is a key, by provider. */
  readonly keys: ReadonlyMap<string, boolean>;
}

/** What can run first, each part in the order in which it came. */
export function offers(models: readonly Model[], ready: Ready): readonly Offer[] {
  const all = models.map((model) => offer(model, ready));
  return [...all.filter((one) => one.why === undefined), ...all.filter((one) => one.why !== undefined)];
}

function offer(model: Model, { served, keys }: Ready): Offer {
  const { provider } = model;
  if (served !== undefined && !served.has(provider))
    return { model, why: "no worker", way: `No worker serves provider '${provider}'. Enable one in config.yaml and start it.` };
  if (model.needs_key === true && keys.get(provider) === false)
    return { model, why: "no key", way: `There is no key for ${provider}. Set one, then start again.` };
  return { model };
}

/** A model's key in the picker. */
export function keyOf(model: { provider: string; id: string }): string {
  return `${model.provider}/${model.id}`;
}

/**
 * The model that runs: the one chosen if it can, else the first that can and whose provider has a key, else the first that can.
 * Undefined: nothing is known to run, so whoever starts turns falls back to its own default.
 */
export function pick(list: readonly Offer[], chosen: string, keys: ReadonlyMap<string, boolean>): Model | undefined {
  const able = list.filter((one) => one.why === undefined).map((one) => one.model);
  const free = (model: Model) => model.needs_key === false;
  return (
    able.find((model) => keyOf(model) === chosen) ??
    able.find((model) => keys.get(model.provider) === true) ??
    able.find(free) ??
    able.find((model) => model.pricing?.input_per_1m === 0 && model.pricing.output_per_1m === 0) ??
    able[0]
  );
}

/** Providers' names in the ids that they serve: `provider::<name>::stream`. */
export function providersIn(ids: readonly string[]): ReadonlySet<string> {
  return new Set(ids.flatMap((id) => /^provider::(.+)::stream$/.exec(id)?.[1] ?? []));
}

/** The models that a provider's function names in its metadata, as far as they can be read. */
export function modelsIn(metadata: unknown): readonly Model[] {
  const models = (metadata as { models?: unknown } | null)?.models;
  return Array.isArray(models) ? models.filter(isModel) : [];
}

function isModel(value: unknown): value is Model {
  const model = value as Partial<Model> | null;
  return typeof model?.id === "string" && typeof model.provider === "string" && typeof model.display_name === "string";
}
