// Whether what a run asks for exists: its provider on the bus now, its model in the catalogue when there is one.
import { providerStream } from "@iii/contracts";
import { BusError, nearest, sleep } from "@iii/sdk";
import { modelsGet, modelsList } from "@iii/worker-models-catalog/contract";
import { graceLeft, idsBelow, isNotServed, waitServed } from "../catalogue.ts";
import type { Deps } from "../deps.ts";

const POLL_MS = 200;

async function providersNow(deps: Deps): Promise<string[]> {
  const ids = await idsBelow(deps.iii, "provider::");
  return ids.flatMap((id) => /^provider::(?<name>.+)::stream$/.exec(id)?.groups?.["name"] ?? []).toSorted();
}

/**
 * `served` is what was served a moment ago.
 * @throws BusError `provider_unknown` naming the providers that are connected. Never falls back to another one.
 */
export async function checkProvider(provider: string, served: ReadonlySet<string>, deps: Deps): Promise<void> {
  const { id } = providerStream(provider);
  if (served.has(id)) return;
  if (await waitServed(deps, id, graceLeft(deps))) return;
  const known = await providersNow(deps);
  const have = known.length === 0 ? "no provider is connected" : `connected: ${known.join(", ")}`;
  throw new BusError("provider_unknown", `nobody serves ${id}; ${have}`, { details: { provider, known } });
}

async function lookUp(provider: string, model_id: string, deps: Deps): Promise<"known" | string[]> {
  if ((await deps.iii.trigger(modelsGet, { provider, model_id })) !== null) return "known";
  const { models } = await deps.iii.trigger(modelsList, { provider });
  const ids = models.map((model) => model.id);
  return ids.includes(model_id) ? "known" : ids;
}

/**
 * Without a catalogue every model is accepted, and so is a provider's that has told the catalogue of none.
 * @throws BusError `model_unknown` naming the nearest id, and how one is added.
 */
export async function checkModel(provider: string, model: string, deps: Deps): Promise<void> {
  const until = deps.clock.monotonic() + graceLeft(deps);
  for (;;) {
    const found = await lookUpSafely(provider, model, deps);
    if (found === "known" || found.length === 0) return;
    if (deps.clock.monotonic() >= until) {
      throw unknownModel(provider, model, found);
    }
    await sleep(deps.clock, POLL_MS);
  }
}

const NAMED = 10;

function unknownModel(provider: string, model: string, known: readonly string[]): BusError {
  const near = nearest(model, known);
  const meant = near === undefined ? "" : `; did you mean '${near}'?`;
  const rest = known.length > NAMED ? ` and ${known.length - NAMED} more` : "";
  const message = `provider '${provider}' has no model '${model}' in the catalogue${meant} It has: ${known.slice(0, NAMED).join(", ")}${rest}. A model that it serves and the catalogue does not know is added with models::register`;
  return new BusError("model_unknown", message, {
    details: { provider, model, known: known.slice(0, NAMED), near: near === undefined ? [] : [near] },
  });
}

async function lookUpSafely(provider: string, model: string, deps: Deps): Promise<"known" | string[]> {
  try {
    return await lookUp(provider, model, deps);
  } catch (err) {
    if (isNotServed(err)) return "known";
    deps.log.warn({ err, provider, model }, "the model catalogue did not answer; the model is not checked");
    return "known";
  }
}
