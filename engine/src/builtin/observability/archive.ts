// Spans of sessions, kept on disk so that a turn resumed after a crash is still one tree. Written behind, in few commits; delays nobody.
import { type BusError, type Clock, type Logger, type Timer, toBusError } from "@iii/sdk";
import type { Row, Store, Write } from "../../ports/store.ts";
import { seqKey } from "../storage/ledger.ts";
import type { StoredSpan } from "./contract.ts";
import { attribute } from "./queries.ts";

const SPACE = "trace";
const FLUSH_MS = 200;
/** More than this between two commits is a flood; what is over stays in memory only. */
const MAX_PER_FLUSH = 1_000;
/** A row is closed when it has so many characters. */
const MAX_ROW = 256 * 1024;

export interface ArchiveDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Without captured payloads: they make most of a span's size and are worth little after a restart. */
function lean(span: StoredSpan): StoredSpan {
  return { ...span, events: span.events.filter((event) => !event.name.startsWith("iii.invocation.")) };
}

/** By hand: thousands are read at each start. */
function isSpan(value: unknown): value is StoredSpan {
  if (typeof value !== "object" || value === null) return false;
  const span = value as Record<string, unknown>;
  const texts = ["trace_id", "span_id", "name", "service_name"].every((field) => typeof span[field] === "string");
  const times = ["start_time_unix_nano", "end_time_unix_nano"].every((field) => Number.isFinite(span[field]));
  if (!texts || !times || !hasPairs(span)) return false;
  return ["events", "links"].every((field) => Array.isArray(span[field]) && span[field].every(hasPairs));
}

const hasPairs = (value: unknown): boolean => {
  const { attributes } = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  return Array.isArray(attributes) && attributes.every(isPair);
};
const isPair = (value: unknown): boolean => Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string");

/**
 * One row holds the spans of one trace that changed between two flushes, under `<trace id>/<number>`: a span that is written again stands
 * in a later row too, and the later one counts.
 */
export class Archive {
  readonly #deps: ArchiveDeps;
  /** Traces that belong to a session, with the keys of their rows. */
  readonly #kept = new Map<string, string[]>();
  /** What has changed since the last flush, by trace and by span. */
  readonly #dirty = new Map<string, Map<string, StoredSpan>>();
  /** Spans in `#dirty`. */
  #waiting = 0;
  /** Rows of traces that are gone. */
  #gone: string[] = [];
  #rows = 0;
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

  /** The spans of earlier runs, the oldest first. A row that cannot be read is skipped and said. */
  async load(): Promise<StoredSpan[]> {
    const rows = (await this.#deps.store.load()).filter((row) => row.space === SPACE);
    const found = new Map<string, StoredSpan>();
    for (const row of rows) {
      const [trace_id = "", number] = row.key.split("/");
      this.#rows = Math.max(this.#rows, Number(number) || 0);
      this.#keys(trace_id).push(row.key);
      for (const span of this.#read(row)) found.set(`${trace_id}/${span.span_id}`, span);
    }
    return [...found.values()].sort((a, b) => a.start_time_unix_nano - b.start_time_unix_nano);
  }

  /** Notes a change of a span; `undefined`: its trace is gone. `trace` gives the trace's spans when it turns out to be a session's. */
  note(trace_id: string, span: StoredSpan | undefined, trace: () => readonly StoredSpan[]): void {
    if (span === undefined) this.#drop(trace_id);
    else if (this.#kept.has(trace_id)) this.#put(span);
    else if (attribute(span, "iii.session.id") !== undefined) for (const member of trace()) this.#put(member);
    if (this.#dirty.size + this.#gone.length > 0) this.#timer ??= this.#deps.clock.setTimer(() => void this.flush(), FLUSH_MS);
  }

  /** Writes what has changed. Never rejects: a trace that cannot be kept is no reason to stop work. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const gone = this.#gone;
    const dirty = [...this.#dirty];
    this.#gone = [];
    this.#dirty.clear();
    this.#waiting = 0;
    if (gone.length + dirty.length > 0 && this.#error === undefined) {
      const removals = gone.map((key) => ({ space: SPACE, key, value: null }));
      this.#writing = this.#write([...removals, ...dirty.flatMap(([trace_id, changes]) => this.#additions(trace_id, changes))]);
    }
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

  #additions(trace_id: string, changes: ReadonlyMap<string, StoredSpan>): Write[] {
    const writes: Write[] = [];
    let texts: string[] = [];
    let size = 0;
    const close = (): void => {
      this.#rows += 1;
      const key = `${trace_id}/${seqKey(this.#rows)}`;
      this.#keys(trace_id).push(key);
      writes.push({ space: SPACE, key, value: `[${texts.join(",")}]` });
      texts = [];
      size = 0;
    };
    for (const span of changes.values()) {
      const text = JSON.stringify(lean(span));
      texts.push(text);
      size += text.length;
      if (size >= MAX_ROW) close();
    }
    if (texts.length > 0) close();
    return writes;
  }

  #read(row: Row): readonly StoredSpan[] {
    try {
      const spans: unknown = JSON.parse(row.value);
      if (Array.isArray(spans)) {
        const read = spans.filter(isSpan);
        if (read.length < spans.length)
          this.#deps.log.warn({ key: row.key, spans: spans.length - read.length }, "stored spans cannot be read");
        return read;
      }
    } catch (cause) {
      this.#deps.log.warn({ err: cause, key: row.key }, "stored spans cannot be read");
      return [];
    }
    this.#deps.log.warn({ key: row.key }, "stored spans cannot be read: the row holds no list");
    return [];
  }

  /** Made into text when it is written: most spans change twice before. */
  #put(span: StoredSpan): void {
    const changes = this.#dirty.get(span.trace_id) ?? new Map<string, StoredSpan>();
    if (!changes.has(span.span_id)) {
      if (this.#waiting >= MAX_PER_FLUSH) {
        this.#skipped += 1;
        return;
      }
      this.#waiting += 1;
    }
    this.#keys(span.trace_id);
    changes.set(span.span_id, span);
    this.#dirty.set(span.trace_id, changes);
  }

  #drop(trace_id: string): void {
    this.#gone.push(...(this.#kept.get(trace_id) ?? []));
    this.#kept.delete(trace_id);
    this.#waiting -= this.#dirty.get(trace_id)?.size ?? 0;
    this.#dirty.delete(trace_id);
  }

  #keys(trace_id: string): string[] {
    const keys = this.#kept.get(trace_id) ?? [];
    this.#kept.set(trace_id, keys);
    return keys;
  }
}
