// What the whole page shows: the connection, the lists, and the session that is open.
import type { ConnectionState, Iii } from "@iii/sdk";
import type * as Harness from "@iii/worker-harness/contract";
import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { call, newId } from "./bus.ts";
import { Directory } from "./directory.ts";
import type { Rights } from "./model/key.ts";
import type { PageLink } from "./page-link.ts";
import { SessionStore } from "./session-store.ts";

/** `stale`: connected, but the last questions were not answered. `gone`: nothing answers at the page's address. */
export type Link = "connecting" | "live" | "reconnecting" | "stale" | "gone";

const BEAT_MS = 10_000;
/** After a beat that failed: the worker that answers is probably being restarted. */
const SOON_MS = 1_500;
const GATHER_MS = 120;

export class App {
  readonly iii: Iii;
  readonly rights: ReadonlySignal<Rights>;
  readonly directory: Directory;
  readonly link = signal<Link>("connecting");
  readonly since = signal(Date.now());
  readonly now = signal(Date.now());
  readonly open = signal<SessionStore | null>(null);
  readonly #page: PageLink;
  readonly #browser_id = newId();
  #gather: ReturnType<typeof setTimeout> | undefined;
  #soon: ReturnType<typeof setTimeout> | undefined;

  constructor(page: PageLink) {
    this.#page = page;
    this.iii = page.iii;
    this.rights = page.rights;
    this.directory = new Directory(page.iii);
  }

  /** Registers what is pushed to this page and starts its timers. They live as long as the page. */
  start(): void {
    this.iii.registerFunction(`ui::session::event::${this.#browser_id}`, (input) => this.#take(input as Harness.SessionPush));
    this.iii.registerFunction(`ui::sessions::changed::${this.#browser_id}`, () => {
      this.changed();
      return null;
    });
    this.iii.onState((state) => this.#moved(state));
    effect(() => {
      if (this.#page.failure.value === "gone") this.#setLink("gone");
      if (this.#page.failure.value === "refused") this.#setLink("reconnecting");
    });
    this.#moved(this.iii.state);
    setInterval(() => void this.#beat(), BEAT_MS);
    setInterval(() => {
      this.now.value = this.#date();
    }, 1000);
  }

  /** Opens a session; the one that was open is closed. */
  show(session_id: string): void {
    if (this.open.value?.session_id === session_id) return;
    this.open.value?.close();
    const deps = { iii: this.iii, browser_id: this.#browser_id, date: () => this.#date(), changed: () => this.changed() };
    const store = new SessionStore({ ...deps, session_id });
    this.open.value = store;
    if (this.iii.state === "connected") void store.load();
  }

  /** Asks again for the lists, once for many changes. */
  readonly changed = (): void => {
    clearTimeout(this.#gather);
    this.#gather = setTimeout(() => void this.directory.lists(), GATHER_MS);
  };

  #moved(state: ConnectionState): void {
    if (state === "connected") this.#setLink("live");
    // The client says how its dials go; that nothing answers them is known better.
    else if (this.link.value !== "gone") this.#setLink(state === "reconnecting" ? "reconnecting" : "connecting");
    if (state !== "connected") return;
    void this.open.value?.load();
    void this.#beat();
  }

  #take({ session_id, event, seq, epoch, gap }: Harness.SessionPush): null {
    if (event?.type === "turn_state_changed") this.changed();
    const store = this.open.value;
    if (store === null || store.session_id !== session_id) return null;
    if (gap === true || event === undefined) store.lost();
    else store.take({ event, seq, epoch });
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
    await Promise.all([this.directory.lists(), this.directory.survey()]);
  }

  #setLink(next: Link): void {
    if (this.link.value === next) return;
    this.link.value = next;
    this.since.value = this.#date();
  }

  /** The date as the server would tell it. */
  #date(): number {
    return Date.now() + this.directory.skew.value;
  }
}
