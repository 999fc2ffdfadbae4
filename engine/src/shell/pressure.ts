// Keeps slow readers from filling memory: whoever sends to a full one is paused, and a reader that makes no progress is dropped.
// What fills a reader with answers to its own calls is the reader: nothing more is read from it until it has caught up.
import type { Clock, Timer, Wire } from "@iii/sdk";

export interface PressureOptions {
  readonly clock: Clock;
  readonly max_buffered_bytes: number;
  readonly slow_consumer_ms: number;
  /** The reader is given up. */
  drop(id: string): void;
}

interface Full {
  readonly wire: Wire;
  readonly paused: Map<string, Wire>;
  /** Bytes given to the wire when it was last seen to make progress, less what it still held. */
  drained: number;
  progress_at: number;
}

const CHECK_MS = 20;
/** Beyond this multiple of the limit a reader is dropped at once: what fills it cannot be paused. */
const HARD_FACTOR = 8;

export class Pressure {
  readonly #options: PressureOptions;
  readonly #sent = new Map<string, number>();
  readonly #full = new Map<string, Full>();
  #timer: Timer | undefined;

  constructor(options: PressureOptions) {
    this.#options = options;
  }

  /** Call after `bytes` were sent to `id` because of a frame from `from`. */
  sent(id: string, wire: Wire, bytes: number, from: { id: string; wire: Wire } | undefined): void {
    const total = (this.#sent.get(id) ?? 0) + bytes;
    this.#sent.set(id, total);
    const { buffered } = wire;
    const { max_buffered_bytes, clock } = this.#options;
    if (buffered <= max_buffered_bytes) return;
    if (buffered > HARD_FACTOR * max_buffered_bytes) {
      this.#options.drop(id);
      return;
    }
    const full = this.#full.get(id) ?? { wire, paused: new Map(), drained: total - buffered, progress_at: clock.monotonic() };
    this.#full.set(id, full);
    if (from !== undefined && !full.paused.has(from.id)) {
      full.paused.set(from.id, from.wire);
      from.wire.pause();
    }
    this.#timer ??= clock.setTimer(() => this.#check(), CHECK_MS);
  }

  /** The reader took what waited: its senders may go on. */
  drained(id: string): void {
    const full = this.#full.get(id);
    if (full !== undefined && full.wire.buffered <= this.#options.max_buffered_bytes / 2) this.#release(id);
  }

  /** The connection is gone: whoever waited for it goes on. */
  forget(id: string): void {
    this.#sent.delete(id);
    this.#release(id);
    for (const full of this.#full.values()) full.paused.delete(id);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const id of [...this.#full.keys()]) this.#release(id);
  }

  #release(id: string): void {
    const full = this.#full.get(id);
    if (full === undefined) return;
    this.#full.delete(id);
    for (const [sender, wire] of full.paused) if (!this.isPaused(sender)) wire.resume();
  }

  /** Whether nothing is read from this sender now. */
  isPaused(sender: string): boolean {
    for (const full of this.#full.values()) if (full.paused.has(sender)) return true;
    return false;
  }

  #check(): void {
    const { clock, max_buffered_bytes, slow_consumer_ms } = this.#options;
    const now = clock.monotonic();
    for (const [id, full] of [...this.#full]) {
      const { buffered } = full.wire;
      const drained = (this.#sent.get(id) ?? 0) - buffered;
      if (buffered <= max_buffered_bytes / 2) this.#release(id);
      else if (drained > full.drained) Object.assign(full, { drained, progress_at: now });
      else if (now - full.progress_at >= slow_consumer_ms) this.#options.drop(id);
    }
    this.#timer = this.#full.size === 0 ? undefined : clock.setTimer(() => this.#check(), CHECK_MS);
  }
}
