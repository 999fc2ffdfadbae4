// What the whole page shows: the connection, sessions, models, what waits for a decision, and the session that is open.
import type { Model } from "@iii/contracts";
import type { ConnectionState, Iii } from "@iii/sdk";
import type * as Gate from "@iii/worker-approval-gate/contract";
import type * as Harness from "@iii/worker-harness/contract";
import type * as Models from "@iii/worker-models-catalog/contract";
import type * as Session from "@iii/worker-session/contract";
import { signal } from "@preact/signals";
import { call, newId } from "./bus.ts";
import { type Advice, advice } from "./model/advice.ts";
import { SessionStore } from "./session-store.ts";

/** `stale`: connected, but the last questions were not answered. */
export type Link = "connecting" | "live" | "reconnecting" | "stale";

const BEAT_MS = 10_000;
/** After a beat that failed: the worker that answers is probably being restarted. */
const SOON_MS = 1_500;
const GATHER_MS = 120;

export class App {
  readonly iii: Iii;
  readonly link = signal<Link>("connecting");
  readonly since = signal(Date.now());
  readonly now = signal(Date.now());
  readonly sessions = signal<readonly Session.SessionRow[] | null>(null);
  readonly sessionsProblem = signal<Advice | null>(null);
  readonly models = signal<readonly Model[]>([]);
  readonly pending = signal<readonly Gate.PendingApproval[]>([]);
  readonly open = signal<SessionStore | null>(null);
  readonly #browser_id = newId();
  #gather: ReturnType<typeof setTimeout> | undefined;
  #soon: ReturnType<typeof setTimeout> | undefined;

  constructor(iii: Iii) {
    this.iii = iii;
  }

  /** Registers what is pushed to this page and starts its timers. They live as long as the page. */
  start(): void {
    this.iii.registerFunction(`ui::session::event::${this.#browser_id}`, (input) => this.#pushed(input as Harness.SessionPush));
    this.iii.registerFunction(`ui::sessions::changed::${this.#browser_id}`, () => {
      this.changed();
      return null;
    });
    this.iii.onState((state) => this.#moved(state));
    this.#moved(this.iii.state);
    setInterval(() => void this.#beat(), BEAT_MS);
    setInterval(() => {
      this.now.value = Date.now();
    }, 1000);
  }

  /** Opens a session; the one that was open is closed. */
  show(session_id: string): void {
    if (this.open.value?.session_id === session_id) return;
    this.open.value?.close();
    const store = new SessionStore({ iii: this.iii, browser_id: this.#browser_id, session_id, changed: () => this.changed() });
    this.open.value = store;
    if (this.iii.state === "connected") void store.load();
  }

  /** Asks again for the lists, once for many changes. */
  readonly changed = (): void => {
    clearTimeout(this.#gather);
    this.#gather = setTimeout(() => void this.#lists(), GATHER_MS);
  };

  #moved(state: ConnectionState): void {
    this.#setLink(state === "connected" ? "live" : state === "reconnecting" ? "reconnecting" : "connecting");
    if (state !== "connected") return;
    void this.open.value?.load();
    void this.#beat();
  }

  #pushed({ session_id, event, seq, epoch, gap }: Harness.SessionPush): null {
    if (event?.type === "turn_state_changed") this.changed();
    const store = this.open.value;
    if (store === null || store.session_id !== session_id) return null;
    if (gap === true || event === undefined) store.lost();
    else store.push({ event, seq, epoch });
    return null;
  }

  async #beat(): Promise<void> {
    if (this.iii.state !== "connected") return;
    try {
      await call<typeof Harness.uiSubscribe>(this.iii, "ui::subscribe", { browser_id: this.#browser_id });
      await this.open.value?.beat();
      this.#setLink("live");
    } catch {
      if (this.iii.state === "connected") this.#setLink("stale");
      clearTimeout(this.#soon);
      this.#soon = setTimeout(() => void this.#beat(), SOON_MS);
    }
    await this.#lists();
    if (this.models.value.length > 0) return;
    const answer = await call<typeof Models.modelsList>(this.iii, "models::list", {}).catch(() => undefined); // the default model stays on offer
    if (answer !== undefined) this.models.value = answer.models;
  }

  async #lists(): Promise<void> {
    const [list, waiting] = await Promise.allSettled([
      call<typeof Session.listSessions>(this.iii, "session-tree::list", { limit: 200 }),
      call<typeof Gate.listPending>(this.iii, "approval::list_pending", {}),
    ]);
    if (list.status === "fulfilled") this.sessions.value = list.value.sessions;
    this.sessionsProblem.value = list.status === "rejected" ? advice(list.reason) : null;
    if (waiting.status === "fulfilled") this.pending.value = waiting.value;
  }

  #setLink(next: Link): void {
    if (this.link.value === next) return;
    this.link.value = next;
    this.since.value = Date.now();
  }
}
