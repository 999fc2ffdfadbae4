// Spans in memory, bounded. The oldest trace gives way; what a dead process left open is closed as lost.
import { cleanSpan } from "./clean.ts";
import type { StoredSpan } from "./contract.ts";
import { QuietSpans } from "./quiet.ts";

export const LOST = "iii.span.lost";

export interface SpanStoreOptions {
  readonly max_spans?: number;
  readonly max_spans_per_trace?: number;
  /** Runs after every change that should outlive the process; `span` undefined: the trace is gone. */
  changed?(trace_id: string, span: StoredSpan | undefined): void;
}

const key = (span: StoredSpan): string => `${span.trace_id}/${span.span_id}`;

/** A span that its process can no longer end. */
export function lose(span: StoredSpan, now_nano: number): StoredSpan {
  const { pending: _, ...rest } = span;
  return {
    ...rest,
    end_time_unix_nano: Math.max(now_nano, span.start_time_unix_nano),
    status: "error",
    status_description: "the process ended before this span did",
    attributes: [...span.attributes.filter(([name]) => name !== LOST), [LOST, "true"]],
  };
}

export class SpanStore {
  readonly #quiet = new QuietSpans();
  readonly #traces = new Map<string, Map<string, StoredSpan>>();
  /** Open spans by the connection that must end them. */
  readonly #open = new Map<string, Map<string, StoredSpan>>();
  readonly #owners = new Map<string, string>();
  readonly #max: number;
  readonly #maxPerTrace: number;
  readonly #changed: (trace_id: string, span: StoredSpan | undefined) => void;
  #count = 0;
  #dropped = 0;

  constructor(options: SpanStoreOptions = {}) {
    this.#max = options.max_spans ?? 20_000;
    this.#maxPerTrace = options.max_spans_per_trace ?? 5_000;
    this.#changed = options.changed ?? (() => undefined);
  }

  get count(): number {
    return this.#count;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a started or an ended span. An end replaces a start or a loss; a start that comes late changes nothing. */
  put(raw: StoredSpan, source: string): void {
    const trace = this.#traces.get(raw.trace_id) ?? new Map<string, StoredSpan>();
    const known = trace.get(raw.span_id);
    if (this.#quiet.judge(raw)?.shown === false) return;
    if (known !== undefined && raw.pending === true) return;
    if (known === undefined && trace.size >= this.#maxPerTrace) {
      this.#dropped += 1;
      return;
    }
    const span = cleanSpan(raw);
    this.#track(span, source);
    this.#traces.set(span.trace_id, trace);
    trace.set(span.span_id, span);
    if (known === undefined) this.#count += 1;
    this.#tell(span);
    this.#evict(span.trace_id);
  }

  /** The connection has ended: nobody will end what it left open. */
  close(source: string, now_nano: number): void {
    const open = this.#open.get(source);
    this.#open.delete(source);
    for (const span of open?.values() ?? []) {
      this.#owners.delete(key(span));
      this.#replace(lose(span, now_nano));
    }
  }

  trace(trace_id: string): readonly StoredSpan[] {
    return [...(this.#traces.get(trace_id)?.values() ?? [])];
  }

  /** The spans of a trace that are worth keeping for long. */
  lasting(trace_id: string): readonly StoredSpan[] {
    return this.trace(trace_id).filter((span) => !this.#quiet.has(span));
  }

  all(): readonly StoredSpan[] {
    return [...this.#traces.values()].flatMap((trace) => [...trace.values()]);
  }

  clear(): void {
    for (const trace_id of [...this.#traces.keys()]) this.#forget(trace_id);
    this.#open.clear();
    this.#owners.clear();
  }

  #track(span: StoredSpan, source: string): void {
    if (span.pending !== true) {
      this.#release(span);
      return;
    }
    this.#owners.set(key(span), source);
    const open = this.#open.get(source) ?? new Map<string, StoredSpan>();
    this.#open.set(source, open.set(key(span), span));
  }

  /** Nobody has to end this span any more. */
  #release(span: StoredSpan): void {
    const owner = this.#owners.get(key(span));
    if (owner === undefined) return;
    this.#owners.delete(key(span));
    this.#open.get(owner)?.delete(key(span));
  }

  #replace(span: StoredSpan): void {
    const trace = this.#traces.get(span.trace_id);
    if (trace?.has(span.span_id) !== true) return;
    trace.set(span.span_id, span);
    this.#tell(span);
  }

  #tell(span: StoredSpan): void {
    if (!this.#quiet.has(span)) this.#changed(span.trace_id, span);
  }

  #evict(keep: string): void {
    for (const trace_id of this.#traces.keys()) {
      if (this.#count <= this.#max) return;
      if (trace_id === keep) continue;
      this.#dropped += this.#traces.get(trace_id)?.size ?? 0;
      this.#forget(trace_id);
    }
  }

  #forget(trace_id: string): void {
    const trace = this.#traces.get(trace_id);
    this.#count -= trace?.size ?? 0;
    for (const span of trace?.values() ?? []) this.#release(span);
    this.#traces.delete(trace_id);
    this.#quiet.forget(trace_id);
    this.#changed(trace_id, undefined);
  }
}
