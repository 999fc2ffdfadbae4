// Which spans are the patter of a live stream: many, alike, and of interest to nobody an hour later. Pure bookkeeping.
import type { StoredSpan } from "./contract.ts";

const PATTER: ReadonlySet<string> = new Set(["call stream::set", "call stream::send", "stream_triggers"]);
/** So many of them are shown per trace; the rest is left out together with everything below it. */
const SHOWN_PER_TRACE = 60;

/** So many hidden ones are remembered per trace, so that what hangs below them and their ends are known as hidden too. */
const REMEMBERED = 2_000;

interface Patter {
  readonly shown: Set<string>;
  readonly hidden: Set<string>;
}

export class QuietSpans {
  readonly #traces = new Map<string, Patter>();

  /** Ids that are remembered. */
  get size(): number {
    return [...this.#traces.values()].reduce((sum, { shown, hidden }) => sum + shown.size + hidden.size, 0);
  }

  /** Undefined: not quiet. Else whether it is kept in memory. What hangs below a quiet span is quiet too. */
  judge(span: StoredSpan): { shown: boolean } | undefined {
    const known = this.#verdict(span.trace_id, span.span_id);
    if (known !== undefined) return { shown: known };
    const parent = span.parent_span_id === null ? undefined : this.#verdict(span.trace_id, span.parent_span_id);
    if (parent === undefined && !PATTER.has(span.name)) return undefined;
    const trace = this.#traces.get(span.trace_id) ?? { shown: new Set<string>(), hidden: new Set<string>() };
    this.#traces.set(span.trace_id, trace);
    const shown = parent ?? trace.shown.size < SHOWN_PER_TRACE;
    if (shown) trace.shown.add(span.span_id);
    else hide(trace.hidden, span.span_id);
    return { shown };
  }

  has(span: StoredSpan): boolean {
    return this.#verdict(span.trace_id, span.span_id) !== undefined;
  }

  forget(trace_id: string): void {
    this.#traces.delete(trace_id);
  }

  /** Whether a quiet span is shown; undefined when it is none. */
  #verdict(trace_id: string, span_id: string): boolean | undefined {
    const trace = this.#traces.get(trace_id);
    if (trace?.shown.has(span_id) === true) return true;
    return trace?.hidden.has(span_id) === true ? false : undefined;
  }
}

function hide(hidden: Set<string>, span_id: string): void {
  hidden.add(span_id);
  if (hidden.size <= REMEMBERED) return;
  for (const oldest of hidden) {
    hidden.delete(oldest);
    break;
  }
}
