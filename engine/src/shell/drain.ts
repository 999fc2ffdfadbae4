// The end of an engine, gently: no new work, and time for what runs.
import { type Clock, sleep, within } from "@iii/sdk";
import { type Core, isBusy } from "../core/core.ts";

const FLUSH_MS = 20;

export class Drain {
  readonly #core: Core;
  readonly #clock: Clock;
  #idle: (() => void) | undefined;

  constructor(core: Core, clock: Clock) {
    this.#core = core;
    this.#clock = clock;
  }

  /** Resolves when no connection runs a call, or after `ms`. */
  async start(ms: number): Promise<void> {
    this.#core.draining = true;
    if (!isBusy(this.#core)) return;
    const idle = new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
    await within(this.#clock, ms, idle, () => undefined);
    // The last answers are on their way to their sockets.
    await sleep(this.#clock, FLUSH_MS);
  }

  /** Something has ended. */
  check(): void {
    if (this.#idle !== undefined && !isBusy(this.#core)) this.#idle();
  }
}
