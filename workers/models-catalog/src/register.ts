// models::* over state scope `models`. Reads never write: the seed is laid under the stored rows at each read.
import { Model } from "@iii/contracts";
import { functionsInfo, stateGet, stateList, stateSet } from "@iii/engine/contract";
import { BusError, defineWorker, type Iii, issueText, type Logger } from "@iii/sdk";
import { authStatus } from "@iii/worker-auth-credentials/contract";
import { z } from "zod";
import { keyOf, merged, SCOPE, supports } from "./catalogue.ts";
import { Config } from "./config.ts";
import { modelsDefault, modelsGet, modelsList, modelsRegister, modelsSupports } from "./contract.ts";
import { choose, offer, type Readiness } from "./offers.ts";
import { LMSTUDIO_PLACEHOLDER, SEED } from "./seed.ts";

const Listed = z.array(z.object({ key: z.string(), value: z.unknown() }));
/** Ids that one look-up takes. */
const LOOKUP = 32;
const ASK_MS = 2_000;

async function find(iii: Iii, provider: string, id: string): Promise<Model | null> {
  const key = keyOf(provider, id);
  const row = (await iii.trigger(stateGet, { scope: SCOPE, key })) ?? null;
  if (row !== null) {
    const parsed = Model.safeParse(row);
    if (parsed.success) return parsed.data;
    throw new BusError("store_corrupt", `scope '${SCOPE}': ${key} is not a model; set it again with models::register`);
  }
  const seeded = SEED.find((model) => model.provider === provider && model.id === id);
  return seeded ?? (provider === LMSTUDIO_PLACEHOLDER.provider ? LMSTUDIO_PLACEHOLDER : null);
}

/** All models. A row that is none is reported and left out: it must not take the others along. */
async function all(iii: Iii, log: Logger): Promise<Model[]> {
  const rows = Listed.parse(await iii.trigger(stateList, { scope: SCOPE, with_keys: true }));
  const stored = rows.flatMap(({ key, value }) => {
    const parsed = Model.safeParse(value);
    if (parsed.success) return [parsed.data];
    const problem = issueText(parsed.error, "the row");
    log.warn({ scope: SCOPE, key }, `a row is not a model and is left out (${problem}); set it again with models::register`);
    return [];
  });
  return merged(stored, SEED);
}

async function readiness(iii: Iii, models: readonly Model[]): Promise<Readiness> {
  const providers = [...new Set(models.map(({ provider }) => provider))];
  const served = await servedOf(iii, providers).catch(() => undefined);
  const asked = [...new Set(models.filter(({ needs_key }) => needs_key === true).map(({ provider }) => provider))];
  const answers = await Promise.allSettled(asked.map((provider) => iii.trigger(authStatus, { provider }, { timeout_ms: ASK_MS })));
  const keys = new Map(answers.flatMap((answer, i) => (answer.status === "fulfilled" ? [[asked[i] ?? "", answer.value] as const] : [])));
  return { served, keys };
}

async function servedOf(iii: Iii, providers: readonly string[]): Promise<ReadonlySet<string>> {
  const served = new Set<string>();
  for (let at = 0; at < providers.length; at += LOOKUP) {
    const names = providers.slice(at, at + LOOKUP);
    const answer = await iii.trigger(functionsInfo, { function_ids: names.map((name) => `provider::${name}::stream`) });
    const rows = "functions" in answer ? answer.functions : [answer];
    for (const [i, row] of rows.entries()) if (!("error" in row)) served.add(names[i] ?? "");
  }
  return served;
}

export const worker = defineWorker({
  name: "models-catalog",
  config: Config,
  register(on, { iii, log }) {
    on(modelsList, async ({ provider, capability }) => {
      const models = (await all(iii, log))
        .filter((model) => provider === undefined || model.provider === provider)
        .filter((model) => capability === undefined || supports(model, capability));
      const ready = await readiness(iii, models);
      return { models: models.map((model) => offer(model, ready)) };
    });
    on(modelsDefault, async () => {
      const models = await all(iii, log);
      const ready = await readiness(iii, models);
      const chosen = choose(
        models.map((model) => offer(model, ready)),
        ready,
      );
      return chosen === undefined ? null : Model.parse(chosen);
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
