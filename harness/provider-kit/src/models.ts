// What a provider knows of its models: the catalogue's row, else its own. Also tells the catalogue about them.
import { Model } from "@iii/contracts";
import { BusError, type Clock, type Iii, type Logger, type Timer } from "@iii/sdk";
import { modelsGet, modelsRegister } from "@iii/worker-models-catalog/contract";

const KEEP_MS = 60_000;
const ASK_MS = 5_000;
const AGAIN_MS = 1_000;
const TRIES = 120;

export type Lookup = { readonly known: true; readonly model: Model | undefined } | { readonly known: false };

export interface ModelBook {
  /** `known: false` only when a catalogue answered and neither it nor the provider has the model. */
  find(id: string): Promise<Lookup>;
  /** Starts telling the catalogue the models it lacks, until it has them, it refuses, or `stop`. Never throws. */
  announce(): void;
  stop(): void;
}

export function modelBook(options: { iii: Iii; clock: Clock; log: Logger; provider: string; models: readonly Model[] }): ModelBook {
  const { iii, clock, log, provider, models } = options;
  const kept = new Map<string, { until: number; lookup: Lookup }>();
  let timer: Timer | undefined;
  let stopped = false;

  async function ask(id: string): Promise<Model | null> {
    const row = await iii.trigger(modelsGet, { provider, model_id: id }, { timeout_ms: ASK_MS });
    return Model.nullable().parse(row ?? null);
  }

  async function find(id: string): Promise<Lookup> {
    const own = models.find((model) => model.id === id);
    try {
      const model = (await ask(id)) ?? own;
      return model === undefined ? { known: false } : { known: true, model };
    } catch (thrown) {
      log.debug({ provider, model: id, reason: String(thrown) }, "no catalogue: using the provider's own list");
      return { known: true, model: own };
    }
  }

  async function announceOnce(): Promise<void> {
    for (const model of models) {
      // A row that is there may be someone's correction: it stays.
      if ((await ask(model.id)) === null) await iii.trigger(modelsRegister, model, { timeout_ms: ASK_MS });
    }
  }

  async function announceUntilDone(tries: number): Promise<void> {
    try {
      await announceOnce();
    } catch (thrown) {
      const absent = thrown instanceof BusError && (thrown.code === "function_not_found" || thrown.retryable);
      if (!absent || tries >= TRIES || stopped) return log.info({ provider, reason: String(thrown) }, "models are not in the catalogue");
      timer = clock.setTimer(() => void announceUntilDone(tries + 1), AGAIN_MS);
    }
  }

  return {
    async find(id) {
      const hit = kept.get(id);
      if (hit !== undefined && hit.until > clock.monotonic()) return hit.lookup;
      const lookup = await find(id);
      // An unknown model may be registered the next moment: only good answers are kept.
      if (lookup.known && lookup.model !== undefined) kept.set(id, { until: clock.monotonic() + KEEP_MS, lookup });
      return lookup;
    },
    announce: () => void announceUntilDone(1),
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}
