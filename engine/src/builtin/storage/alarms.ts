// Wake-ups at a monotonic time, however far away: a timer of the system takes 24 days at most.
import type { Clock, Timer } from "@iii/sdk";

const CHUNK_MS = 86_400_000;

export class Alarms {
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `then` once the monotonic clock shows `until`, and never after `stop`. */
  at(until: number, then: () => void): void {
    const left = until - this.#clock.monotonic();
    const timer = this.#clock.setTimer(
      () => {
        this.#timers.delete(timer);
        if (this.#stopped) return;
        if (this.#clock.monotonic() < until) this.at(until, then);
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
