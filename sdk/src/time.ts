// Waiting, on a clock that tests can drive. Nothing here rejects by itself.
import type { Clock, Timer } from "./ports.ts";

/** Resolves after `ms`, or at once when `signal` is aborted. Never rejects. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let timer: Timer | undefined;
    const done = (): void => {
      timer?.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    if (signal?.aborted) return resolve();
    signal?.addEventListener("abort", done, { once: true });
    timer = clock.setTimer(done, ms);
  });
}

/** What `work` comes to, or `late()` when it takes longer than `ms`. `work` goes on; what it comes to then is ignored. */
export function within<T, L>(clock: Clock, ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(() => {
      try {
        resolve(late());
      } catch (thrown) {
        reject(thrown);
      }
    }, ms);
    work.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** Resolves when `signal` is aborted, also when it already is. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
