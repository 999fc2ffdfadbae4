// A clock that moves only when told to; its wall time can be set apart. Timers run in order of time, then of creation.
import type { Clock, Timer } from "../ports.ts";

interface Pending {
  at: number;
  order: number;
  callback: () => void;
}

export class ManualClock implements Clock {
  /** Wall time less monotonic time. */
  #offset: number;
  #now = 0;
  #order = 0;
  readonly #timers = new Set<Pending>();

  constructor(start = 1_767_225_600_000) {
    this.#offset = start;
  }

  now(): number {
    return this.#offset + this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  /** Sets the wall clock forward or back, as a correction of the system's clock does. No timer notices. */
  step(ms: number): void {
    this.#offset += ms;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    this.#order += 1;
    const timer: Pending = { at: this.#now + Math.max(0, delayMs), order: this.#order, callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** How many timers wait. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves time on by `ms` and runs what falls due, letting promises and I/O settle before and after each timer. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await settle();
    for (let next = this.#due(until); next !== undefined; next = this.#due(until)) {
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await settle();
    }
    this.#now = until;
    await settle();
  }

  #due(until: number): Pending | undefined {
    let first: Pending | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= until && (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order)))
        first = timer;
    }
    return first;
  }
}

/** Lets everything run that needs no time: microtasks, immediates, and the chains they start. */
export async function settle(rounds = 8): Promise<void> {
  for (let round = 0; round < rounds; round += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Waits until `condition` holds, without real time. @throws when it does not within `rounds` event-loop turns. */
export async function until(condition: () => boolean, what = "the condition", rounds = 2_000): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    if (condition()) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  throw new Error(`${what} did not come true`);
}
