// Which models can run now, and why the others cannot. The catalogue says it; the page knows no model and no provider by name. Pure.
import type { Model } from "@iii/contracts";

/** What a catalogue may say beside the model. One that does not say it holds nothing against a model. */
type Listed = Model & {
  readonly can_run?: boolean | undefined;
  readonly why_not?: string | undefined;
  readonly way?: string | undefined;
};

/** A model of the picker. `why` stands where it cannot run, with the way to change that. */
export interface Offer {
  readonly model: Model;
  readonly why?: string;
  readonly way?: string | undefined;
}

/** What can run first, each part in the order in which it came. */
export function offers(models: readonly Listed[]): readonly Offer[] {
  const all = models.map((model): Offer => {
    if (model.can_run !== false) return { model };
    return { model, why: (model.why_not ?? "cannot run").replaceAll("_", " "), way: model.way };
  });
  return [...all.filter((one) => one.why === undefined), ...all.filter((one) => one.why !== undefined)];
}

/** A model's key in the picker. */
export function keyOf(model: { provider: string; id: string }): string {
  return `${model.provider}/${model.id}`;
}

/**
 * The model that runs: the one chosen if it can, else the catalogue's `preferred` one, else one that needs no key, else the first that can.
 * Undefined: nothing is known to run, so whoever starts turns falls back to its own default.
 */
export function pick(list: readonly Offer[], chosen: string, preferred: string | undefined): Model | undefined {
  const able = list.filter((one) => one.why === undefined).map((one) => one.model);
  return (
    able.find((model) => keyOf(model) === chosen) ??
    able.find((model) => keyOf(model) === preferred) ??
    able.find((model) => model.needs_key === false) ??
    able[0]
  );
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
