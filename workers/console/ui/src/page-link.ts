// How this page reaches the engine: its connection, what it may do there, and why it does not get in.
import type { Iii } from "@iii/sdk";
import { connect } from "@iii/sdk/browser";
import { signal } from "@preact/signals";
import { type Failure, Lifeline } from "./lifeline.ts";
import { busUrl, type Rights } from "./model/key.ts";
import { PageKey } from "./page-key.ts";

/** An engine that starts may not take a socket at first. */
const REFUSALS = 2;

export class PageLink {
  readonly iii: Iii;
  readonly rights = signal<Rights>("none");
  /** Why the last dials did not succeed; null once one has. */
  readonly failure = signal<Failure | null>(null);
  readonly #key: PageKey;
  readonly #lifeline: Lifeline;
  #refusals = 0;

  private constructor(key: PageKey) {
    this.#key = key;
    this.#lifeline = new Lifeline({
      url: () => busUrl(location, key.value),
      failed: (failure) => this.#failed(failure),
      opened: () => this.#opened(),
    });
    this.iii = connect({ dialer: this.#lifeline, name: "console-page", reconnect: { initial_ms: 500, max_ms: 4_000 } });
    this.#lifeline.start();
    key.onChange = () => {
      this.#refusals = 0;
      this.#lifeline.redial();
    };
  }

  /** Takes the key out of the address before anything is shown, and starts to connect. */
  static async open(): Promise<PageLink> {
    const key = new PageKey();
    await key.ask();
    return new PageLink(key);
  }

  #opened(): void {
    this.#refusals = 0;
    this.failure.value = null;
    if (this.#key.value !== undefined) this.rights.value = "keyed";
    else if (this.rights.value !== "expired") this.rights.value = "none";
  }

  #failed(failure: Failure): void {
    this.failure.value = failure;
    if (failure !== "refused") return;
    this.#refusals += 1;
    if (this.#refusals < REFUSALS) return;
    this.#refusals = 0;
    if (this.#key.value === undefined) {
      this.rights.value = "locked";
      return;
    }
    this.#key.drop();
    this.rights.value = "expired";
    void this.#key.ask();
  }
}
