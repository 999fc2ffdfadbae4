// A span sink without the OpenTelemetry SDK: for tests and for runtimes that cannot carry it. Each start and end leaves at once.
import { type ActiveSpan, type SpanSink, type SpanStart, unrecorded } from "../client/spans.ts";
import type { Clock, Dialer, Random } from "../ports.ts";
import { systemClock, systemRandom } from "../system.ts";
import { TelemetryLink, telemetryFrame } from "./link.ts";
import { type OtlpSpan, traceRequest } from "./otlp.ts";
import { formatTraceparent, parseTraceparent } from "./traceparent.ts";

export interface LightSpansOptions {
  readonly service: string;
  readonly dialer: Dialer;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly payloads?: boolean;
  /** Where OTLP JSON goes instead of a wire of its own; `running`: the span has only started. */
  readonly send?: (json: string, running: boolean) => void;
}

interface Recorded {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent: string | undefined;
  /** Wall time; the span lasts as long as the monotonic clock says, whatever happens to the wall clock meanwhile. */
  readonly start: number;
  readonly started: number;
  readonly spec: SpanStart;
  readonly events: { time: string; name: string; attributes: Readonly<Record<string, string>> }[];
}

const KINDS = { internal: 1, server: 2, client: 3 } as const;
const nanos = (ms: number): string => `${Math.round(ms)}000000`;
/** Sends its spans over a telemetry wire of its own. */
export class LightSpans implements SpanSink {
  readonly payloads: boolean;
  readonly #service: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #out: (json: string, running: boolean) => void;
  readonly #link: TelemetryLink | undefined;

  constructor(options: LightSpansOptions) {
    this.#service = options.service;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.payloads = options.payloads ?? true;
    const { dialer, send } = options;
    const link = send === undefined ? new TelemetryLink({ dialer, clock: this.#clock, random: this.#random }) : undefined;
    this.#link = link;
    this.#out = send ?? ((json) => link?.send(telemetryFrame("OTLP", json)));
  }

  start(spec: SpanStart): ActiveSpan {
    const parent = parseTraceparent(spec.traceparent);
    if (parent?.sampled === false) return unrecorded(spec.traceparent ?? "", (body) => body());
    const span: Recorded = {
      trace_id: parent?.trace_id ?? this.#random.hex(16),
      span_id: this.#random.hex(8),
      parent: parent?.span_id,
      start: this.#clock.now(),
      started: this.#clock.monotonic(),
      spec,
      events: [],
    };
    let ended = false;
    this.#send(span, undefined, undefined);
    return {
      traceparent: formatTraceparent({ trace_id: span.trace_id, span_id: span.span_id, sampled: true }),
      event: (name, attributes) => void span.events.push({ time: nanos(this.#at(span)), name, attributes }),
      end: (error) => {
        if (!ended) this.#send(span, this.#at(span), error);
        ended = true;
      },
      run: (body) => body(),
    };
  }

  /** The wall time of this moment, counted from the span's start. */
  #at(span: Recorded): number {
    return span.start + this.#clock.monotonic() - span.started;
  }

  async close(): Promise<void> {
    await this.#link?.close();
  }

  #send(span: Recorded, end: number | undefined, error: { code: string; message: string } | undefined): void {
    const record: OtlpSpan = {
      trace_id: span.trace_id,
      span_id: span.span_id,
      parent_span_id: span.parent,
      name: span.spec.name,
      kind: KINDS[span.spec.kind],
      start: nanos(span.start),
      end: end === undefined ? "0" : nanos(end),
      attributes: span.spec.attributes,
      events: span.events,
      links: [],
      status: error === undefined ? { code: end === undefined ? 0 : 1 } : { code: 2, message: `${error.code}: ${error.message}` },
    };
    this.#out(traceRequest(new Map([[this.#service, [record]]])), end === undefined);
  }
}
