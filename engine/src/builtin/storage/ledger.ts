// One atomic, durable change over everything the storage built-ins keep. Memory is the truth while the engine runs;
// a batch is made and applied to memory synchronously, and what follows from it happens only after it is on disk.
import { type BusError, failpoint, failpointsArmed, toBusError } from "@iii/sdk";
import type { Row, Store, Write } from "../../ports/store.ts";

const META = "meta";
const REV_KEY = "rev";

export interface LedgerHost {
  readonly store: Store;
  fatal(error: BusError): void;
}

/** The rows of one change, and what to do once they are durable. */
export interface Batch {
  put(space: string, key: string, value: string): void;
  remove(space: string, key: string): void;
  /** Runs after the commit, in commit order; never when it failed. */
  after(then: () => void): void;
  /** Call once, in the same synchronous run in which memory was changed. */
  commit(): Promise<void>;
}

export interface Ledger {
  /** Reads the store once. */
  load(): Promise<void>;
  /** The loaded rows whose space starts with `prefix`. */
  rows(prefix: string): readonly Row[];
  /** A row holds this number: later ones are higher. For what is restored; anything but a number counts for nothing. */
  reached(used: number): void;
  /** Lets go of the loaded rows. */
  forget(): void;
  /** The next number of one store-wide rising sequence: revisions, and the order of queue messages. */
  next(): number;
  batch(): Batch;
  /** Marks that numbers up to now were given out for something that leaves no row behind. */
  keepRev(batch: Batch): void;
  /** Resolves when what memory holds now for this space (and key) is durable. */
  settled(space: string, key?: string): Promise<void>;
  /** Resolves when all that memory holds now is durable. */
  allSettled(): Promise<void>;
}

/** What is on its way to the disk, by space and by row. */
class Pending {
  readonly #promises = new Map<string, Promise<void>>();

  static names(writes: readonly Write[]): readonly string[] {
    return [...new Set(writes.flatMap(({ space, key }) => [space, `${space}\0${key}`]))];
  }
  get(space: string, key: string | undefined): Promise<void> | undefined {
    return this.#promises.get(key === undefined ? space : `${space}\0${key}`);
  }
  mark(names: readonly string[], promise: Promise<void>): void {
    for (const name of names) this.#promises.set(name, promise);
  }
  clear(names: readonly string[], promise: Promise<void>): void {
    for (const name of names) if (this.#promises.get(name) === promise) this.#promises.delete(name);
  }
}

/** Sortable text of a sequence number. */
export const seqKey = (seq: number): string => String(seq).padStart(16, "0");

/** Sends batches to the store in order and runs what follows from them, in the same order, when they are durable. */
function sender(host: LedgerHost, pending: Pending): (writes: readonly Write[], then: readonly (() => void)[]) => Promise<void> {
  let tail: Promise<void> = Promise.resolve();
  return (writes, then) => {
    const names = Pending.names(writes);
    // Waits for the batch before it too: batches without writes never meet the store, and must not be overtaken.
    const stored = writes.length === 0 ? tail : Promise.all([host.store.commit(writes), tail]);
    const durable = stored.then(
      () => {
        pending.clear(names, durable);
        for (const run of then) run();
        // The answer leaves in a later phase of this event-loop turn; only then has the commit been acknowledged.
        if (failpointsArmed && writes.length > 0) setImmediate(() => setImmediate(() => failpoint("commit.acked")));
      },
      (thrown: unknown) => {
        const error = toBusError(thrown, "store_unavailable");
        host.fatal(error);
        throw error;
      },
    );
    // A caller that does not wait must not turn a failure, which `fatal` has reported, into an unhandled rejection.
    durable.catch(() => undefined);
    pending.mark(names, durable);
    tail = durable;
    return durable;
  };
}

export function createLedger(host: LedgerHost): Ledger {
  let seq = 0;
  let loaded: readonly Row[] = [];
  let loading: Promise<void> | undefined;
  const pending = new Pending();
  const send = sender(host, pending);
  const reached = (used: number): void => {
    if (Number.isSafeInteger(used) && used > seq) seq = used;
  };
  return {
    reached,
    load: () => {
      loading ??= host.store.load().then((rows) => {
        loaded = rows;
        reached(Number(rows.find((row) => row.space === META && row.key === REV_KEY)?.value));
      });
      return loading;
    },
    rows: (prefix) => loaded.filter((row) => row.space.startsWith(prefix)),
    forget: () => {
      loaded = [];
    },
    next: () => {
      seq += 1;
      return seq;
    },
    batch: () => {
      const writes: Write[] = [];
      const then: (() => void)[] = [];
      return {
        put: (space, key, value) => void writes.push({ space, key, value }),
        remove: (space, key) => void writes.push({ space, key, value: null }),
        after: (run) => void then.push(run),
        commit: () => send(writes, then),
      };
    },
    keepRev: (batch) => batch.put(META, REV_KEY, String(seq)),
    settled: async (space, key) => {
      await pending.get(space, key);
    },
    allSettled: () => send([], []),
  };
}
