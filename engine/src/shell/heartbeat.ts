// Pings every connection; one that stays silent through two pings is given up.
import type { Clock, Timer, Wire } from "@iii/sdk";

export interface HeartbeatOptions {
  readonly clock: Clock;
  readonly interval_ms: number;
  /** Whether nothing is read from this connection now, so that its silence says nothing. */
  paused(id: string): boolean;
  silent(id: string): void;
}

const MISSES = 2;

export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #wires = new Map<string, { wire: Wire; missed: number }>();
  #timer: Timer | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  watch(id: string, wire: Wire): void {
    if (wire.ping === undefined) return;
    this.#wires.set(id, { wire, missed: 0 });
    this.#timer ??= this.#options.clock.setTimer(() => this.#beat(), this.#options.interval_ms);
  }

  /** Something arrived: the peer lives. */
  alive(id: string): void {
    const watched = this.#wires.get(id);
    if (watched !== undefined) watched.missed = 0;
  }

  forget(id: string): void {
    this.#wires.delete(id);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#wires.clear();
  }

  #beat(): void {
    for (const [id, watched] of [...this.#wires]) {
      if (watched.missed >= MISSES) {
        this.#wires.delete(id);
        this.#options.silent(id);
        continue;
      }
      if (!this.#options.paused(id)) watched.missed += 1;
      watched.wire.ping?.();
    }
    this.#timer = this.#wires.size === 0 ? undefined : this.#options.clock.setTimer(() => this.#beat(), this.#options.interval_ms);
  }
}
