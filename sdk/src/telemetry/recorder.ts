// The one recorder of spans: gives them ids and times and hands them to an outlet, which keeps no span once it has ended.
import { type ActiveSpan, type SpanKind, type SpanSink, type SpanStart, unrecorded } from "../client/spans.ts";
import type { Clock, Random } from "../ports.ts";
import { formatTraceparent, parseTraceparent } from "./traceparent.ts";

export interface SpanEventData {
  readonly name: string;
  /** Wall time. */
  readonly time_ms: number;
  readonly attributes: Readonly<Record<string, string>>;
}

/** A span as an outlet sees it. Times are wall time in ms; `end_ms` is 0 while the span runs. */
export interface RecordedSpan {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly service: string;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly events: readonly SpanEventData[];
  readonly links: readonly { readonly trace_id: string; readonly span_id: string }[];
  readonly status: "unset" | "ok" | "error";
  readonly description: string | undefined;
}

export interface SpanOutlet {
  started(span: RecordedSpan): void;
  ended(span: RecordedSpan): void;
}

/** Makes the span known to instrumentation that is not ours. */
export interface Surroundings {
  run<T>(traceparent: string, body: () => T): T;
  active(): string | undefined;
}

export interface RecorderOptions {
  /** Whose spans these are. */
  readonly service: string;
  readonly outlet: SpanOutlet;
  readonly clock: Clock;
  readonly random: Random;
  readonly payloads?: boolean;
  readonly around?: () => Surroundings | undefined;
}

const NONE: never[] = [];

export class Recorder implements SpanSink {
  readonly payloads: boolean;
  readonly options: RecorderOptions;

  constructor(options: RecorderOptions) {
    this.options = options;
    this.payloads = options.payloads ?? true;
  }

  start(spec: SpanStart): ActiveSpan {
    const parent = parseTraceparent(spec.traceparent);
    if (parent?.sampled === false) return unrecorded(spec.traceparent ?? "");
    const { random, outlet } = this.options;
    const span = new Recording(this.options, spec, parent?.trace_id ?? random.hex(16), random.hex(8), parent?.span_id);
    outlet.started(span);
    return span;
  }

  active(): string | undefined {
    return this.options.around?.()?.active();
  }
}

const linkTo = (traceparent: string): { trace_id: string; span_id: string }[] => {
  const target = parseTraceparent(traceparent);
  return target === undefined ? [] : [{ trace_id: target.trace_id, span_id: target.span_id }];
};

class Recording implements ActiveSpan, RecordedSpan {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | undefined;
  readonly kind: SpanKind;
  readonly start_ms: number;
  readonly links: RecordedSpan["links"];
  name: string;
  end_ms = 0;
  attributes: Readonly<Record<string, string>>;
  events: SpanEventData[] = NONE;
  status: RecordedSpan["status"] = "unset";
  description: string | undefined;
  readonly #options: RecorderOptions;
  /** The span lasts as long as the monotonic clock says, whatever happens to the wall clock meanwhile. */
  readonly #started: number;

  constructor(options: RecorderOptions, spec: SpanStart, trace_id: string, span_id: string, parent: string | undefined) {
    const { clock } = options;
    this.#options = options;
    this.trace_id = trace_id;
    this.span_id = span_id;
    this.parent_span_id = parent;
    this.name = spec.name;
    this.kind = spec.kind;
    this.attributes = spec.attributes;
    this.links = spec.links === undefined ? NONE : spec.links.flatMap(linkTo);
    this.start_ms = clock.now();
    this.#started = clock.monotonic();
  }

  get service(): string {
    return this.#options.service;
  }

  get traceparent(): string {
    return formatTraceparent({ trace_id: this.trace_id, span_id: this.span_id, sampled: true });
  }

  update({ name, attributes }: { name?: string; attributes?: Readonly<Record<string, string>> }): void {
    if (this.end_ms !== 0) return;
    this.name = name ?? this.name;
    if (attributes !== undefined) this.attributes = { ...this.attributes, ...attributes };
  }

  event(name: string, attributes: Readonly<Record<string, string>>): void {
    if (this.end_ms !== 0) return;
    if (this.events.length === 0) this.events = [];
    this.events.push({ name, time_ms: this.#now(), attributes });
  }

  end(error?: { code: string; message: string }): void {
    if (this.end_ms !== 0) return;
    this.end_ms = this.#now();
    this.status = error === undefined ? "ok" : "error";
    if (error !== undefined) this.description = `${error.code}: ${error.message}`;
    this.#options.outlet.ended(this);
  }

  run<T>(body: () => T): T {
    const around = this.#options.around?.();
    return around === undefined ? body() : around.run(this.traceparent, body);
  }

  #now(): number {
    return this.start_ms + this.#options.clock.monotonic() - this.#started;
  }
}
