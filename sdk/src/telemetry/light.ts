// A span sink without the OpenTelemetry SDK: for tests and for runtimes that cannot carry it. Each start and end leaves at once.
import type { ActiveSpan, SpanSink, SpanStart } from "../client/spans.ts";
import type { Clock, Dialer, Random } from "../ports.ts";
import { systemClock, systemRandom } from "../system.ts";
import { TelemetryLink, telemetryFrame } from "./link.ts";
import { formatTraceparent, parseTraceparent } from "./traceparent.ts";

export interface LightSpansOptions {
  readonly service: string;
  readonly dialer: Dialer;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly payloads?: boolean;
}

interface Recorded {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent: string | undefined;
  readonly start: number;
  readonly spec: SpanStart;
  readonly events: { timeUnixNano: string; name: string; attributes: object[] }[];
}

const KINDS = { internal: 1, server: 2, client: 3 } as const;
const nanos = (ms: number): string => `${Math.round(ms)}000000`;
const pairs = (attributes: Readonly<Record<string, string>>): object[] =>
  Object.entries(attributes).map(([key, stringValue]) => ({ key, value: { stringValue } }));

/** Sends its spans over a telemetry wire of its own. */
export class LightSpans implements SpanSink {
  readonly payloads: boolean;
  readonly #service: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #link: TelemetryLink;

  constructor(options: LightSpansOptions) {
    this.#service = options.service;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.payloads = options.payloads ?? true;
    this.#link = new TelemetryLink({ dialer: options.dialer, clock: this.#clock, random: this.#random });
  }

  start(spec: SpanStart): ActiveSpan {
    const parent = parseTraceparent(spec.traceparent);
    const span: Recorded = {
      trace_id: parent?.trace_id ?? this.#random.hex(16),
      span_id: this.#random.hex(8),
      parent: parent?.span_id,
      start: this.#clock.now(),
      spec,
      events: [],
    };
    let ended = false;
    this.#send(span, undefined, undefined);
    return {
      traceparent: formatTraceparent({ trace_id: span.trace_id, span_id: span.span_id, sampled: true }),
      event: (name, attributes) => void span.events.push({ timeUnixNano: nanos(this.#clock.now()), name, attributes: pairs(attributes) }),
      end: (error) => {
        if (!ended) this.#send(span, this.#clock.now(), error);
        ended = true;
      },
      run: (body) => body(),
    };
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  #send(span: Recorded, end: number | undefined, error: { code: string; message: string } | undefined): void {
    const record = {
      traceId: span.trace_id,
      spanId: span.span_id,
      parentSpanId: span.parent,
      name: span.spec.name,
      kind: KINDS[span.spec.kind],
      startTimeUnixNano: nanos(span.start),
      endTimeUnixNano: end === undefined ? "0" : nanos(end),
      attributes: pairs(span.spec.attributes),
      events: span.events,
      status: error === undefined ? { code: end === undefined ? 0 : 1 } : { code: 2, message: `${error.code}: ${error.message}` },
    };
    const resource = { attributes: pairs({ "service.name": this.#service }) };
    const body = { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "@iii/sdk" }, spans: [record] }] }] };
    this.#link.send(telemetryFrame("OTLP", JSON.stringify(body)));
  }
}
