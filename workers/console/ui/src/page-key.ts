// The page's key: from the address into this tab's memory, and from tab to tab. It is never shown, logged or sent anywhere but to the
// page's own engine.
import { keyIn } from "./model/key.ts";

const STORED = "iii.key";
/** How long a new tab waits for another one to answer before it goes on without a key. */
const ASK_MS = 100;

export class PageKey {
  readonly #tabs = new BroadcastChannel(STORED);
  /** Another key came, from the address or from another tab. */
  onChange: () => void = () => {};
  #key: string | undefined;
  /** A key that the engine does not know; other tabs may still offer it. */
  #dead: string | undefined;

  constructor() {
    this.#key = sessionStorage.getItem(STORED) ?? undefined;
    this.#take();
    this.#tabs.onmessage = ({ data }: MessageEvent<unknown>) => this.#heard(data);
    window.addEventListener("hashchange", () => this.#take());
  }

  get value(): string | undefined {
    return this.#key;
  }

  /** Asks the open tabs when this one has no key. Resolves once one has answered, or none in time. */
  async ask(): Promise<void> {
    if (this.#key !== undefined) return;
    this.#tabs.postMessage({ ask: true });
    for (let waited = 0; waited < ASK_MS && this.#key === undefined; waited += 10) await new Promise((done) => setTimeout(done, 10));
  }

  /** The engine does not know it. */
  drop(): void {
    this.#dead = this.#key;
    this.#key = undefined;
    sessionStorage.removeItem(STORED);
  }

  /** A link with a key that is opened in a tab changes its fragment only: the page is not loaded again. */
  #take(): void {
    const { found, key, rest } = keyIn(location.hash);
    if (!found) return;
    history.replaceState(history.state, "", `${location.pathname}${location.search}${rest}`);
    if (key === undefined) return;
    this.#tabs.postMessage({ key });
    this.#use(key);
  }

  #heard(data: unknown): void {
    const { ask, key } = (data ?? {}) as { ask?: unknown; key?: unknown };
    if (ask === true && this.#key !== undefined) this.#tabs.postMessage({ key: this.#key });
    if (typeof key === "string" && this.#key === undefined && keyIn(`key=${key}`).key === key) this.#use(key);
  }

  #use(key: string): void {
    if (key === this.#key || key === this.#dead) return;
    this.#key = key;
    sessionStorage.setItem(STORED, key);
    this.onChange();
  }
}
