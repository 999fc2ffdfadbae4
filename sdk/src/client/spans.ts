// The port between the client and whatever records spans. Without a sink, the caller's trace context is handed on unchanged.

export type SpanKind = "internal" | "client" | "server" | "producer" | "consumer";

export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  /** The caller's context; absent = a new trace. */
  readonly traceparent: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
  /** Contexts of the spans that this one is linked to. */
  readonly links?: readonly string[];
}

export interface ActiveSpan {
  /** W3C context whose parent id is this span. */
  readonly traceparent: string;
  /** False when nothing is recorded: what would go into an event need not be made. Default true. */
  readonly recording?: boolean;
  /** Renames the span, or sets attributes. Changes nothing once it has ended. */
  update(change: { name?: string; attributes?: Readonly<Record<string, string>> }): void;
  event(name: string, attributes: Readonly<Record<string, string>>): void;
  /** Ends the span. Ending twice does nothing. */
  end(error?: { code: string; message: string }): void;
  /** Runs `body` with this span active for instrumentation that looks for one. */
  run<T>(body: () => T): T;
}

export interface SpanSink {
  start(span: SpanStart): ActiveSpan;
  /** The context of a span that the running code opened itself, if any. */
  active?(): string | undefined;
  /** Whether payload events are wanted. */
  readonly payloads: boolean;
}

/** Stands for the work below a context that is not sampled: hands that context on. */
export function unrecorded(traceparent: string): ActiveSpan {
  return { traceparent, recording: false, update() {}, event() {}, end() {}, run: (body) => body() };
}
