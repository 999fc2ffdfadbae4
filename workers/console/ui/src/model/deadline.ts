// Times that do not hang on the browser's date, which may be hours off: what is counted down runs on elapsed time, and dates are told as the
// server would tell them. Pure.

/** `ends_at`: on the clock that `now` came from, which never jumps; undefined = never, or nobody said. */
export type Counted<T> = T & { readonly ends_at?: number };

/** Stamps rows as they arrive; `remaining_ms` is what the server said was left when it answered. */
export function counted<T extends { readonly remaining_ms?: number | null | undefined }>(rows: readonly T[], now: number): Counted<T>[] {
  return rows.map((row) => (typeof row.remaining_ms === "number" ? { ...row, ends_at: now + row.remaining_ms } : row));
}

/** An HTTP date has whole seconds, and its answer took a while: less than this is no difference. */
const NEAR_MS = 2_500;

/** How far the server's date is ahead of the browser's `now`, both in ms; 0 when it is near, or was not told. */
export function skewOf(date: string | null, now: number): number {
  const skew = Date.parse(date ?? "") - now;
  return Math.abs(skew) > NEAR_MS ? skew : 0;
}
