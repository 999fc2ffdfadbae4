// Which spans are the patter of a live stream: many, alike, and of interest to nobody an hour later. Pure bookkeeping.
import type { StoredSpan } from "./contract.ts";

const PATTER: ReadonlySet<string> = new Set(["call stream::set", "call stream::send", "stream_triggers"]);
/** So many of them are shown per trace; the rest is left out together with everything below it. */
const SHOWN_PER_TRACE = 60;

export class QuietSpans {
  /** By trace, each quiet span's id, and whether it is shown. */
  readonly #traces = new Map<string, Map<string, boolean>>();

  /** Undefined: not quiet. Else whether it is kept in memory. What hangs below a quiet span is quiet too. */
  judge(span: StoredSpan): { shown: boolean } | undefined {
    const known = this.#traces.get(span.trace_id)?.get(span.span_id);
    if (known !== undefined) return { shown: known };
    const parent = span.parent_span_id === null ? undefined : this.#traces.get(span.trace_id)?.get(span.parent_span_id);
    if (parent === undefined && !PATTER.has(span.name)) return undefined;
    const trace = this.#traces.get(span.trace_id) ?? new Map<string, boolean>();
    this.#traces.set(span.trace_id, trace);
    const shown = parent ?? trace.size < SHOWN_PER_TRACE;
    trace.set(span.span_id, shown);
    return { shown };
  }

  has(span: StoredSpan): boolean {
    return this.#traces.get(span.trace_id)?.has(span.span_id) === true;
  }

  forget(trace_id: string): void {
    this.#traces.delete(trace_id);
  }
}
