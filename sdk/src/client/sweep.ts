// One timer for everything that waits here, set to the earliest due time: a timer for each call would cost more than the call's bookkeeping.
import type { Clock, Timer } from "../ports.ts";

export class Sweep {
  readonly #clock: Clock;
  readonly #run: (now: number) => number;
  #at = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;

  /** `run` ends what is due at `now` (monotonic ms) and says when the next of the rest is due; infinite when none is. */
  constructor(clock: Clock, run: (now: number) => number) {
    this.#clock = clock;
    this.#run = run;
  }

  /** Something falls due at `at`. A timer that is no longer needed runs once for nothing. */
  watch(at: number): void {
    if (at >= this.#at) return;
    this.#timer?.cancel();
    this.#at = at;
    // A millisecond apart at the closest, so that many due times in a row cost one look each and not one timer each.
    this.#timer = this.#clock.setTimer(() => this.#due(), Math.max(1, at - this.#clock.monotonic()));
  }

  stop(): void {
    this.#timer?.cancel();
    this.#at = Number.POSITIVE_INFINITY;
  }

  #due(): void {
    this.#at = Number.POSITIVE_INFINITY;
    this.watch(this.#run(this.#clock.monotonic()));
  }
}
