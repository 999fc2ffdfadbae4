// Spans of sessions, kept on disk so that a turn resumed after a crash is still one tree. Written behind, in few commits; delays nobody.
import { type BusError, type Clock, type Logger, type Timer, toBusError } from "@iii/sdk";
import type { Store, Write } from "../../store/port.ts";
import type { StoredSpan } from "./contract.ts";
import { attribute } from "./queries.ts";

const SPACE = "trace";
const FLUSH_MS = 200;
/** More than this between two commits is a flood; what is over stays in memory only. */
const MAX_PER_FLUSH = 1_000;

export interface ArchiveDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Without captured payloads: they make most of a span's size and are worth little after a restart. */
function lean(span: StoredSpan): StoredSpan {
  return { ...span, events: span.events.filter((event) => !event.name.startsWith("iii.invocation.")) };
}

export class Archive {
  readonly #deps: ArchiveDeps;
  /** Traces that belong to a session, with the keys of their rows. */
  readonly #kept = new Map<string, Set<string>>();
  readonly #dirty = new Map<string, string | null>();
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #error: BusError | undefined;
  #skipped = 0;

  constructor(deps: ArchiveDeps) {
    this.#deps = deps;
  }

  get lastError(): string | null {
    return this.#error?.message ?? null;
  }

  get skipped(): number {
    return this.#skipped;
  }

  /** The spans of earlier runs. A row that cannot be read is skipped and said. */
  async load(): Promise<StoredSpan[]> {
    const rows = (await this.#deps.store.load()).filter((row) => row.space === SPACE);
    return rows.flatMap((row) => {
      const [trace_id = ""] = row.key.split("/");
      this.#keys(trace_id).add(row.key);
      try {
        return [JSON.parse(row.value) as StoredSpan];
      } catch (cause) {
        this.#deps.log.warn({ err: cause, key: row.key }, "a stored span cannot be read");
        return [];
      }
    });
  }

  /** Notes a change of a span; `undefined`: its trace is gone. `trace` gives the trace's spans when it turns out to be a session's. */
  note(trace_id: string, span: StoredSpan | undefined, trace: () => readonly StoredSpan[]): void {
    if (span === undefined) this.#drop(trace_id);
    else if (this.#kept.has(trace_id)) this.#put(span);
    else if (attribute(span, "iii.session.id") !== undefined) for (const member of trace()) this.#put(member);
    if (this.#dirty.size > 0) this.#timer ??= this.#deps.clock.setTimer(() => void this.flush(), FLUSH_MS);
  }

  /** Writes what has changed. Never rejects: a trace that cannot be kept is no reason to stop work. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const writes: Write[] = [...this.#dirty].map(([key, value]) => ({ space: SPACE, key, value }));
    this.#dirty.clear();
    if (writes.length > 0 && this.#error === undefined) this.#writing = this.#write(writes);
    return this.#writing;
  }

  async #write(writes: readonly Write[]): Promise<void> {
    try {
      await this.#deps.store.commit(writes);
    } catch (thrown) {
      this.#error = toBusError(thrown, "store_unavailable");
      this.#deps.log.error({ err: this.#error }, "spans cannot be kept");
    }
  }

  #put(span: StoredSpan): void {
    const key = `${span.trace_id}/${span.span_id}`;
    if (!this.#dirty.has(key) && this.#dirty.size >= MAX_PER_FLUSH) {
      this.#skipped += 1;
      return;
    }
    this.#keys(span.trace_id).add(key);
    this.#dirty.set(key, JSON.stringify(lean(span)));
  }

  #drop(trace_id: string): void {
    for (const key of this.#kept.get(trace_id) ?? []) this.#dirty.set(key, null);
    this.#kept.delete(trace_id);
  }

  #keys(trace_id: string): Set<string> {
    const keys = this.#kept.get(trace_id) ?? new Set<string>();
    this.#kept.set(trace_id, keys);
    return keys;
  }
}
