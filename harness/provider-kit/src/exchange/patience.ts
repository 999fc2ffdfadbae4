// How long one model call may take and be silent, and who may end it. One signal for all reasons.
import { type Clock, sleep, within } from "@iii/sdk";

export type EndedBy = "caller" | "idle" | "total";

/** Why a call was ended before its answer was complete. */
export class Ended extends Error {
  readonly by: EndedBy;
  constructor(by: EndedBy, message: string) {
    super(message);
    this.by = by;
  }
}

export interface Patience {
  readonly signal: AbortSignal;
  /** Waits for a promise, at most for the idle time; rejects with `Ended`. */
  wait<T>(promise: Promise<T>): Promise<T>;
  /** Waits that long; rejects with `Ended`. */
  sleep(ms: number): Promise<void>;
  /** Gives a promise a last, short while to settle. Never rejects. */
  linger(promise: Promise<unknown>, ms: number): Promise<void>;
  dispose(): void;
}

const nothing = () => {};

function raced<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(nothing);
    return Promise.reject(signal.reason);
  }
  const { promise: result, resolve, reject } = Promise.withResolvers<T>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  return result;
}

export function patience(options: { clock: Clock; idle_ms: number; total_ms: number; callers: readonly AbortSignal[] }): Patience {
  const { clock, idle_ms, total_ms, callers } = options;
  const controller = new AbortController();
  const end = (by: EndedBy, message: string) => controller.abort(new Ended(by, message));
  const onCaller = () => end("caller", "aborted by the caller");
  for (const signal of callers) {
    if (signal.aborted) onCaller();
    else signal.addEventListener("abort", onCaller, { once: true });
  }
  const total = clock.setTimer(() => end("total", `no complete answer within ${total_ms} ms`), total_ms);
  return {
    signal: controller.signal,
    async wait(promise) {
      const idle = clock.setTimer(() => end("idle", `the provider sent nothing for ${idle_ms} ms`), idle_ms);
      try {
        return await raced(promise, controller.signal);
      } finally {
        idle.cancel();
      }
    },
    sleep: (ms) => raced(sleep(clock, ms, controller.signal), controller.signal),
    linger: (promise, ms) => within(clock, ms, promise.then(nothing, nothing), nothing),
    dispose() {
      total.cancel();
      for (const signal of callers) signal.removeEventListener("abort", onCaller);
    },
  };
}
