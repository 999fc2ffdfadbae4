// What there is beyond the open session: sessions, what waits for a decision, which models can run, which workers are down. Each part is
// asked for by itself: a layer that is absent costs its own part of the page and no other.
import type * as Engine from "@iii/engine/contract";
import type { Iii } from "@iii/sdk";
import type * as Gate from "@iii/worker-approval-gate/contract";
import type * as Models from "@iii/worker-models-catalog/contract";
import type * as Session from "@iii/worker-session/contract";
import { signal } from "@preact/signals";
import { call } from "./bus.ts";
import { type Advice, advice } from "./model/advice.ts";
import { type Counted, counted, skewOf } from "./model/deadline.ts";
import { keyOf, modelsIn, type Offer, offers } from "./model/offer.ts";

export type Waiting = Counted<Gate.PendingApproval>;
/** What is read of `GET /healthz`. */
interface Health {
  readonly skew: number;
  readonly workers: readonly string[];
  readonly failed: readonly { readonly name: string; readonly reason: string }[];
}

const HEALTH_MS = 3_000;
const SELDOM = 6;

export class Directory {
  readonly sessions = signal<readonly Session.SessionRow[] | null>(null);
  readonly sessionsProblem = signal<Advice | null>(null);
  readonly pending = signal<readonly Waiting[]>([]);
  readonly models = signal<readonly Offer[]>([]);
  /** The key of the model that runs when none is chosen. */
  readonly preferred = signal<string | undefined>(undefined);
  /** Workers that cannot start, with their own words. */
  readonly down = signal<Health["failed"]>([]);
  /** How far the server's date is ahead of the browser's, in ms. */
  readonly skew = signal(0);
  readonly #iii: Iii;
  /** The workers for which the models were asked last. */
  #asked = "";
  #surveys = 0;

  constructor(iii: Iii) {
    this.#iii = iii;
  }

  /** Reads the lists that change with every turn. Never rejects. */
  async lists(): Promise<void> {
    const [list, waiting] = await Promise.allSettled([
      call<typeof Session.listSessions>(this.#iii, "session-tree::list", { limit: 200 }),
      call<typeof Gate.listPending>(this.#iii, "approval::list_pending", {}),
    ]);
    if (list.status === "fulfilled") this.sessions.value = list.value.sessions;
    this.sessionsProblem.value = list.status === "rejected" ? advice(list.reason) : null;
    if (waiting.status === "fulfilled") this.pending.value = counted(waiting.value, performance.now());
  }

  /** Reads what seldom changes: who is down, and, when the workers have changed, which models can run. Never rejects. */
  async survey(): Promise<void> {
    const health = await healthOf().catch(() => undefined);
    if (health !== undefined) {
      this.down.value = health.failed;
      this.skew.value = health.skew;
    }
    const about = JSON.stringify([health?.workers, health?.failed]);
    this.#surveys += 1;
    // A provider may tell the catalogue of a model, and a person may set a key, at any time.
    if (about === this.#asked && this.models.value.length > 0 && this.#surveys % SELDOM !== 0) return;
    this.#asked = about;
    this.models.value = await this.#offers();
    const preferred = await call<typeof Models.modelsDefault>(this.#iii, "models::default", {}).catch(() => null);
    this.preferred.value = preferred === null ? undefined : keyOf(preferred);
  }

  /** The catalogue's models; without a catalogue, those that the providers' own functions name. */
  async #offers(): Promise<readonly Offer[]> {
    try {
      return offers((await call<typeof Models.modelsList>(this.#iii, "models::list", {})).models);
    } catch {
      const served = call<typeof Engine.functionsList>(this.#iii, "engine::functions::list", { prefix: "provider::" });
      return served.then(
        ({ functions }) => offers(functions.flatMap(({ metadata }) => modelsIn(metadata))),
        () => [],
      );
    }
  }
}

/** Answered with 503 while a worker is down, and with the same body. */
async function healthOf(): Promise<Health> {
  const response = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(HEALTH_MS) });
  const { workers, failed } = (await response.json()) as Partial<Health>;
  return { skew: skewOf(response.headers.get("date"), Date.now()), workers: workers ?? [], failed: failed ?? [] };
}
