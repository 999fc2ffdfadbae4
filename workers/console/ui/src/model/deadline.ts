// When a call that waits expires, by this page's own elapsed time. The browser's date may be hours off, so it is never asked. Pure.

/** `ends_at`: on the clock that `now` came from, which never jumps; undefined = never, or nobody said. */
export type Counted<T> = T & { readonly ends_at?: number };

/** Stamps rows as they arrive; `remaining_ms` is what the server said was left when it answered. */
export function counted<T extends { readonly remaining_ms?: number | null | undefined }>(rows: readonly T[], now: number): Counted<T>[] {
  return rows.map((row) => (typeof row.remaining_ms === "number" ? { ...row, ends_at: now + row.remaining_ms } : row));
}
