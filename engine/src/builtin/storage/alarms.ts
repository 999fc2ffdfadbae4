// Wall-clock alarms on top of elapsed-time timers: a clock that jumps is noticed within a minute.
import type { Clock, Timer } from "@iii/sdk";

const CHUNK_MS = 60_000;

export class Alarms {
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `then` once the wall clock shows `until`, and never after `stop`. */
  at(until: number, then: () => void): void {
    const left = until - this.#clock.now();
    const timer = this.#clock.setTimer(
      () => {
        this.#timers.delete(timer);
        if (this.#stopped) return;
        if (this.#clock.now() < until) this.at(until, then);
        else then();
      },
      Math.min(left, CHUNK_MS),
    );
    this.#timers.add(timer);
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) timer.cancel();
  }
}
