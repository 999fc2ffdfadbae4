// Batches on their way to the disk, in the order of their calls: those that arrive while a transaction runs share the next one.
// What is refused for want of space takes along what was planned after it, and nothing else; any other failure is final.
import type { BusError } from "@iii/sdk";
import type { CommitOptions, StoreStats, Write } from "../ports/store.ts";
import { storeFull, takenWhenFull } from "./full.ts";

/** One transaction: all of it or nothing. `small`: it may use the last space. Says what went wrong. */
export type Transact = (writes: readonly Write[], small: boolean) => Promise<BusError | undefined>;

interface Batch {
  readonly writes: readonly Write[];
  readonly small: boolean;
  resolve(): void;
  reject(error: BusError): void;
}

export class Commits {
  /** Only what `takenWhenFull` says is let in. Set by the adapter, which knows its disk. */
  full = false;
  readonly #folder: string;
  readonly #transact: Transact;
  readonly #stats: StoreStats = { commits: 0, writes: 0 };
  #line: Batch[] = [];
  #busy: Promise<void> | undefined;
  #failed: BusError | undefined;

  constructor(folder: string, transact: Transact) {
    this.#folder = folder;
    this.#transact = transact;
  }

  get stats(): StoreStats {
    return { ...this.#stats };
  }

  get failed(): BusError | undefined {
    return this.#failed;
  }

  add(writes: readonly Write[], options: CommitOptions = {}): Promise<void> {
    const small = takenWhenFull(writes, options);
    const refusal = this.#failed ?? (this.full && !small ? storeFull(this.#folder) : undefined);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      this.#line.push({ writes, small, resolve, reject });
      this.#busy ??= this.#run();
    });
  }

  /** Nothing more is accepted. The first reason counts. */
  fail(error: BusError): BusError {
    this.#failed ??= error;
    return this.#failed;
  }

  async settled(): Promise<void> {
    await this.#busy;
  }

  async #run(): Promise<void> {
    while (this.#line.length > 0) {
      const batches = this.#line;
      this.#line = [];
      const error = await this.#try(batches);
      if (error?.code === "STORE_FULL") await this.#saveWhatFits(batches, error);
      else if (error !== undefined) this.#refuse(batches, this.fail(error));
    }
    this.#busy = undefined;
  }

  async #try(batches: readonly Batch[]): Promise<BusError | undefined> {
    const writes = batches.length === 1 && batches[0] !== undefined ? batches[0].writes : batches.flatMap((batch) => batch.writes);
    const small = batches.every((batch) => batch.small);
    const error = await this.#transact(writes, small);
    if (error !== undefined) return error;
    this.#stats.commits += 1;
    this.#stats.writes += writes.length;
    for (const batch of batches) batch.resolve();
    return undefined;
  }

  /**
   * Of the batches that shared a transaction, those before the first one that wants space are tried again. The others are told first:
   * what follows from a success must not be planned on top of what has failed.
   */
  async #saveWhatFits(batches: readonly Batch[], full: BusError): Promise<void> {
    const first = batches.findIndex((batch) => !batch.small);
    const fits = batches.slice(0, Math.max(first, 0));
    this.#refuse(batches.slice(fits.length), full);
    const error = fits.length === 0 ? undefined : await this.#try(fits);
    if (error !== undefined) this.#refuse(fits, error.code === "STORE_FULL" ? error : this.fail(error));
  }

  #refuse(batches: readonly Batch[], error: BusError): void {
    for (const batch of [...batches, ...this.#line.splice(0)]) batch.reject(error);
  }
}
