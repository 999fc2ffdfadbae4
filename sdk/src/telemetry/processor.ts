// Spans of a process's own OpenTelemetry SDK, on their way to the engine: the same wire and the same writer as our recorder's.
import type { NodeSDK } from "@opentelemetry/sdk-node";
import type { SpanKind } from "../client/spans.ts";
import { attributesOf } from "./api-span.ts";
import type { RecordedSpan, SpanOutlet } from "./recorder.ts";

export type NodeSettings = NonNullable<ConstructorParameters<typeof NodeSDK>[0]>;
type SpanProcessor = NonNullable<NodeSettings["spanProcessors"]>[number];
type ReadableSpan = Parameters<SpanProcessor["onEnd"]>[0];

const KINDS: readonly SpanKind[] = ["internal", "server", "client", "producer", "consumer"];
const STATUS = ["unset", "ok", "error"] as const;

const ms = ([seconds, nanos]: readonly [number, number]): number => seconds * 1_000 + nanos / 1e6;

function present(span: ReadableSpan, service: string, running: boolean): RecordedSpan {
  const { traceId, spanId } = span.spanContext();
  return {
    trace_id: traceId,
    span_id: spanId,
    parent_span_id: span.parentSpanContext?.spanId,
    name: span.name,
    kind: KINDS[span.kind] ?? "internal",
    service,
    start_ms: ms(span.startTime),
    end_ms: running ? 0 : ms(span.endTime),
    attributes: attributesOf(span.attributes),
    events: span.events.map(({ name, time, attributes }) => ({ name, time_ms: ms(time), attributes: attributesOf(attributes) })),
    links: span.links.map(({ context }) => ({ trace_id: context.traceId, span_id: context.spanId })),
    status: STATUS[span.status.code] ?? "unset",
    description: span.status.message,
  };
}

export class BusSpanProcessor implements SpanProcessor {
  readonly #service: string;
  readonly #outlet: SpanOutlet & { flush(): void };
  readonly #close: () => Promise<void>;

  constructor(service: string, outlet: SpanOutlet & { flush(): void }, close: () => Promise<void>) {
    this.#service = service;
    this.#outlet = outlet;
    this.#close = close;
  }

  onStart(span: Parameters<SpanProcessor["onStart"]>[0]): void {
    this.#outlet.started(present(span, this.#service, true));
  }

  onEnd(span: ReadableSpan): void {
    this.#outlet.ended(present(span, this.#service, false));
  }

  async forceFlush(): Promise<void> {
    this.#outlet.flush();
  }

  async shutdown(): Promise<void> {
    this.#outlet.flush();
    await this.#close();
  }
}
