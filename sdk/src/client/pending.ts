// Calls that wait for their answer. Knows ids, promises and due times; nothing about frames or the wire.
import { BusError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { Sweep } from "./sweep.ts";

interface Waiting {
  readonly function_id: string;
  resolve(value: unknown): void;
  reject(error: BusError): void;
  readonly timeout_ms: number;
  /** Monotonic ms; infinite = as long as the connection lasts. */
  due: number;
  /** The caller has given up, and waits for the executor's last word only. */
  cancelled: boolean;
  unlisten: (() => void) | undefined;
  /** On the wire: its outcome is unknown once the connection is lost. */
  sent: boolean;
}

/** How long after its deadline a call still waits for the engine to say so itself. */
const GRACE_MS = 1_000;
/** How long a cancelled call waits for its executor's last word. */
const CANCEL_MS = 6_000;

/** The peer's closing code for a message over its limit. */
const TOO_LARGE = 1009;

export interface PendingOptions {
  readonly timeout_ms: number;
  readonly signal?: AbortSignal | undefined;
  /** Called when the caller gives up on a call that is on the wire. */
  onCancel(id: string): void;
}

export class PendingCalls {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Waiting>();
  readonly #sweep: Sweep;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sweep = new Sweep(clock, (now) => this.#expire(now));
  }

  get size(): number {
    return this.#waiting.size;
  }

  has(id: string): boolean {
    return this.#waiting.has(id);
  }

  /** Waits for the answer of `id`; the time runs from now, also while the connection is down. */
  add(id: string, function_id: string, options: PendingOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { timeout_ms, signal } = options;
      const due = timeout_ms > 0 ? this.#clock.monotonic() + timeout_ms + GRACE_MS : Number.POSITIVE_INFINITY;
      const entry: Waiting = { function_id, resolve, reject, timeout_ms, due, cancelled: false, unlisten: undefined, sent: false };
      this.#waiting.set(id, entry);
      this.#sweep.watch(due);
      if (signal !== undefined) this.#listen(id, entry, signal, options);
    });
  }

  markSent(id: string): void {
    const entry = this.#waiting.get(id);
    if (entry !== undefined) entry.sent = true;
  }

  /** Settles a call. False: nobody waits for this id (late, unknown or repeated answers). */
  settle(id: string, outcome: { value: unknown } | { error: BusError }): boolean {
    const entry = this.#take(id);
    if (entry === undefined) return false;
    if ("error" in outcome) entry.reject(outcome.error);
    else entry.resolve(outcome.value);
    return true;
  }

  /** The connection was closed with `code`: calls that were on it reject; those never sent wait on. */
  lose(code: number): void {
    const because = code === TOO_LARGE ? " (a message was larger than the engine's limits.max_frame_bytes)" : "";
    for (const [id, entry] of [...this.#waiting]) {
      if (!entry.sent) continue;
      const message = `the connection was lost${because} while '${entry.function_id}' ran; whether it took effect is unknown`;
      this.settle(id, { error: new BusError("disconnected", message) });
    }
  }

  /** Rejects everything: the client is closed. */
  close(): void {
    this.#sweep.stop();
    for (const [id, entry] of [...this.#waiting]) {
      this.settle(id, { error: new BusError("disconnected", `the client was closed while '${entry.function_id}' waited`) });
    }
  }

  #take(id: string): Waiting | undefined {
    const entry = this.#waiting.get(id);
    if (entry === undefined) return undefined;
    this.#waiting.delete(id);
    entry.unlisten?.();
    return entry;
  }

  #expire(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const [id, { function_id, timeout_ms, due, cancelled }] of this.#waiting) {
      if (due > now) next = Math.min(next, due);
      else if (cancelled) this.settle(id, { error: cancelledBy(function_id) });
      else this.settle(id, { error: new BusError("TIMEOUT", `'${function_id}' did not answer within ${timeout_ms} ms`) });
    }
    return next;
  }

  #listen(id: string, entry: Waiting, signal: AbortSignal, options: PendingOptions): void {
    const abort = (): void => {
      if (!entry.sent) {
        this.settle(id, { error: cancelledBy(entry.function_id) });
        return;
      }
      options.onCancel(id);
      entry.cancelled = true;
      entry.due = this.#clock.monotonic() + CANCEL_MS;
      this.#sweep.watch(entry.due);
    };
    signal.addEventListener("abort", abort, { once: true });
    entry.unlisten = () => signal.removeEventListener("abort", abort);
  }
}

function cancelledBy(function_id: string): BusError {
  return new BusError("cancelled", `'${function_id}' was cancelled by its caller`);
}
