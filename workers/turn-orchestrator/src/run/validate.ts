// Whether what a run asks for exists: its provider on the bus now, its model in the catalogue when there is one.
import { providerStream } from "@iii/contracts";
import { BusError } from "@iii/sdk";
import { modelsGet, modelsList } from "@iii/worker-models-catalog/contract";
import { z } from "zod";
import { type Deps, graceLeft, isNotServed, pause, waitServed } from "../deps.ts";

const POLL_MS = 200;
const Listed = z.object({ functions: z.array(z.object({ function_id: z.string() })) });

async function providersNow(deps: Deps): Promise<string[]> {
  const listed = Listed.safeParse(await deps.iii.trigger("engine::functions::list", { prefix: "provider::" }));
  const ids = listed.success ? listed.data.functions.map((row) => row.function_id) : [];
  return ids.flatMap((id) => /^provider::(?<name>.+)::stream$/.exec(id)?.groups?.["name"] ?? []).toSorted();
}

/**
 * `served` is what was served a moment ago.
 * @throws BusError `provider_unknown` naming the providers that are connected. Never falls back to another one.
 */
export async function checkProvider(provider: string, served: ReadonlySet<string>, deps: Deps): Promise<void> {
  const { id } = providerStream(provider);
  if (served.has(id)) return;
  if (await waitServed(deps, id, graceLeft(deps), new AbortController().signal)) return;
  const known = await providersNow(deps);
  const have = known.length === 0 ? "no provider is connected" : `connected: ${known.join(", ")}`;
  throw new BusError("provider_unknown", `nobody serves ${id}; ${have}`, { details: { provider, known } });
}

/** How many single-character edits lie between two ids. */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, replace));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

export function nearest(wanted: string, ids: readonly string[], count = 3): string[] {
  const far = (id: string): number => distance(wanted.toLowerCase(), id.toLowerCase());
  return ids.toSorted((a, b) => far(a) - far(b)).slice(0, count);
}

async function lookUp(provider: string, model_id: string, deps: Deps): Promise<"known" | string[]> {
  if ((await deps.iii.trigger(modelsGet, { provider, model_id })) !== null) return "known";
  const { models } = await deps.iii.trigger(modelsList, { provider });
  const ids = models.map((model) => model.id);
  return ids.includes(model_id) ? "known" : ids;
}

/**
 * Without a catalogue every model is accepted, and so is a provider's that has told the catalogue of none.
 * @throws BusError `model_unknown` naming the nearest ids.
 */
export async function checkModel(provider: string, model: string, deps: Deps): Promise<void> {
  const until = deps.clock.now() + graceLeft(deps);
  for (;;) {
    const found = await lookUpSafely(provider, model, deps);
    if (found === "known" || found.length === 0) return;
    if (deps.clock.now() >= until) {
      const near = nearest(model, found);
      throw new BusError("model_unknown", `provider '${provider}' has no model '${model}'; did you mean ${near.join(", ")}?`, {
        details: { provider, model, near },
      });
    }
    await pause(deps.clock, POLL_MS);
  }
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
