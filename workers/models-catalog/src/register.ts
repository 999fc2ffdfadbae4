// models::* over state scope `models`. Reads never write: the seed is laid under the stored rows at each read.
import { Model } from "@iii/contracts";
import { stateGet, stateList, stateSet } from "@iii/engine/contract";
import { BusError, defineWorker, type Iii } from "@iii/sdk";
import { z } from "zod";
import { keyOf, merged, SCOPE, supports } from "./catalogue.ts";
import { Config } from "./config.ts";
import { modelsGet, modelsList, modelsRegister, modelsSupports } from "./contract.ts";
import { LMSTUDIO_PLACEHOLDER, SEED } from "./seed.ts";

function parseRow(row: unknown): Model {
  const parsed = Model.safeParse(row);
  if (parsed.success) return parsed.data;
  const where = z.object({ provider: z.string(), id: z.string() }).safeParse(row);
  const key = where.success ? keyOf(where.data.provider, where.data.id) : "a row without provider and id";
  throw new BusError("store_corrupt", `scope '${SCOPE}': ${key} is not a model; set it again with models::register`);
}

async function find(iii: Iii, provider: string, id: string): Promise<Model | null> {
  const row = (await iii.trigger(stateGet, { scope: SCOPE, key: keyOf(provider, id) })) ?? null;
  if (row !== null) return parseRow(row);
  const seeded = SEED.find((model) => model.provider === provider && model.id === id);
  return seeded ?? (provider === LMSTUDIO_PLACEHOLDER.provider ? LMSTUDIO_PLACEHOLDER : null);
}

export const worker = defineWorker({
  name: "models-catalog",
  config: Config,
  register(on, { iii }) {
    on(modelsList, async ({ provider, capability }) => {
      const stored = (await iii.trigger(stateList, { scope: SCOPE })).map(parseRow);
      const models = merged(stored, SEED)
        .filter((model) => provider === undefined || model.provider === provider)
        .filter((model) => capability === undefined || supports(model, capability));
      return { models };
    });
    on(modelsGet, ({ provider, model_id }) => find(iii, provider, model_id));
    on(modelsSupports, async ({ provider, model_id, capability }) => {
      const model = await find(iii, provider, model_id);
      return { supported: model !== null && supports(model, capability) };
    });
    on(modelsRegister, async (model) => {
      const key = keyOf(model.provider, model.id);
      await iii.trigger(stateSet, { scope: SCOPE, key, value: model });
      return { key, registered: true as const };
    });
  },
});
