// One timer for all calls, set to the earliest deadline.
import type { Clock, Timer } from "@iii/sdk";

export interface DeadlinesOptions {
  readonly clock: Clock;
  /** The earliest deadline, in monotonic ms; may be early, never late. */
  next(): number | undefined;
  /** It has passed. */
  due(): void;
}

export class Deadlines {
  readonly #options: DeadlinesOptions;
  #armed: { at: number; timer: Timer } | undefined;

  constructor(options: DeadlinesOptions) {
    this.#options = options;
  }

  /** Call after deadlines may have been added. */
  arm(): void {
    const { clock, next, due } = this.#options;
    const at = next();
    if (at === undefined || (this.#armed !== undefined && this.#armed.at <= at)) return;
    this.#armed?.timer.cancel();
    const timer = clock.setTimer(
      () => {
        this.#armed = undefined;
        due();
      },
      Math.max(1, at - clock.monotonic()),
    );
    this.#armed = { at, timer };
  }

  stop(): void {
    this.#armed?.timer.cancel();
  }
}
