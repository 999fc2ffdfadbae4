// How long to wait before something that failed is tried again.
export const MAX_BACKOFF_MS = 10_000;

/** ms to wait after the `failures`-th failure in a row (from 1). */
export function backoff(baseMs: number, failures: number): number {
  return Math.min(baseMs * 2 ** Math.min(failures - 1, 20), MAX_BACKOFF_MS);
}
