// A full disk: what is still taken then, and how it is said.
import { BusError } from "@iii/sdk";
import type { CommitOptions, Write } from "../ports/store.ts";

/** Rows of this space are counters that every batch brings along: they take no space of their own. */
const META = "meta";

/** Whether a batch is taken while the store is full: it may use the reserve, or makes nothing longer. */
export function takenWhenFull(writes: readonly Write[], { reserve = false }: CommitOptions = {}): boolean {
  return reserve || writes.every(({ space, value }) => value === null || space === META);
}

export const storeFull = (folder: string): BusError =>
  new BusError(
    "STORE_FULL",
    `no space left for ${folder}: make room on its disk (64 MB free at least). Reads, deletes, denials and ends of turns go on; no restart is needed`,
    { details: { folder } },
  );
