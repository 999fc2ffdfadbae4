// Where finished and started OpenTelemetry spans go: batched into OTLP JSON, to the engine
// (which redacts all it takes in) and, redacted here, to a collector if one is asked for.

import type { NodeSDK } from "@opentelemetry/sdk-node";
import { isSecretKey, REDACTED, redactText } from "../secrets.ts";
import { type TelemetryLink, telemetryFrame } from "./link.ts";
import { type OtlpSpan, traceRequest } from "./otlp.ts";

export type SpanProcessor = NonNullable<NonNullable<ConstructorParameters<typeof NodeSDK>[0]>["spanProcessors"]>[number];
type ReadableSpan = Parameters<SpanProcessor["onEnd"]>[0];
type StartedSpan = Parameters<SpanProcessor["onStart"]>[0];

const BATCH_MS = 100;
const MAX_BATCH = 512;
/** Most spans end sooner, and then only their end is sent. */
const SNAPSHOT_MS = 20;

export interface ExporterOptions {
  readonly link: TelemetryLink;
  /** Who made the spans that no worker made. */
  readonly service: string;
  /** A collector's traces endpoint, when the standard environment names one. */
  readonly collector: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Spans that still run some milliseconds after they started are sent with end 0, so that a process that dies leaves a trace of them.
 * Ended spans follow in batches.
 */
export class SpanExporter implements SpanProcessor {
  readonly #options: ExporterOptions;
  readonly #started = new Map<string, StartedSpan>();
  #ended: ReadableSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #snapshotDue: NodeJS.Timeout | undefined;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  onStart(span: StartedSpan): void {
    this.#started.set(span.spanContext().spanId, span);
    this.#snapshotDue ??= setTimeout(() => this.#snapshot(), SNAPSHOT_MS).unref();
  }

  onEnd(span: ReadableSpan): void {
    this.#started.delete(span.spanContext().spanId);
    this.#ended.push(span);
    if (this.#ended.length >= MAX_BATCH) void this.forceFlush();
    this.#timer ??= setTimeout(() => void this.forceFlush(), BATCH_MS).unref();
  }

  async forceFlush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#ended;
    this.#ended = [];
    if (batch.length === 0) return;
    await this.write(this.#encode(batch, false), false);
  }

  /** Sends what has been encoded; spans that still run are none of a collector's business. */
  async write(json: string, running: boolean): Promise<void> {
    this.#options.link.send(telemetryFrame("OTLP", json));
    if (!running) await this.#collect(json);
  }

  async shutdown(): Promise<void> {
    await this.forceFlush();
  }

  #snapshot(): void {
    this.#snapshotDue = undefined;
    const running = [...this.#started.values()];
    this.#started.clear();
    if (running.length === 0) return;
    void this.write(this.#encode(running, true), true);
  }

  #encode(spans: readonly ReadableSpan[], running: boolean): string {
    const services = new Map<string, OtlpSpan[]>();
    for (const span of spans) {
      const service = String(span.attributes[SERVICE] ?? this.#options.service);
      const members = services.get(service) ?? [];
      members.push(present(span, running));
      services.set(service, members);
    }
    return traceRequest(services);
  }

  /** A collector that is away loses spans, never work. */
  async #collect(json: string): Promise<void> {
    const { collector, headers } = this.#options;
    if (collector === undefined) return;
    try {
      const body = redactOtlp(json);
      const signal = AbortSignal.timeout(5_000);
      await fetch(collector, { method: "POST", headers: { "content-type": "application/json", ...headers }, body, signal });
    } catch {
      // Nothing to convert it to: telemetry about lost telemetry would be lost the same way.
    }
  }
}

/** The attribute by which a span says which worker of the process made it. Becomes `service.name` on the way out. */
export const SERVICE = "iii.service";

/** Seconds and nanoseconds as one number's text: it does not fit a double. */
const nanos = ([seconds, rest]: readonly [number, number]): string => `${seconds}${String(rest).padStart(9, "0")}`;

/** Of a running span only what names and places it: the rest comes with its end. */
function present(span: ReadableSpan, running: boolean): OtlpSpan {
  const { traceId, spanId } = span.spanContext();
  const { [SERVICE]: _, ...attributes } = span.attributes;
  return {
    trace_id: traceId,
    span_id: spanId,
    parent_span_id: span.parentSpanContext?.spanId,
    name: span.name,
    kind: span.kind + 1,
    start: nanos(span.startTime),
    end: running ? "0" : nanos(span.endTime),
    attributes,
    events: running ? [] : span.events.map((event) => ({ name: event.name, time: nanos(event.time), attributes: event.attributes ?? {} })),
    links: running
      ? []
      : span.links.map(({ context, attributes: more }) => ({ trace_id: context.traceId, span_id: context.spanId, attributes: more ?? {} })),
    status: span.status,
  };
}

function redactOtlp(json: string): string {
  return JSON.stringify(JSON.parse(json, redactEntry));
}

/** OTLP attributes are `{key, value: {stringValue}}`: the key decides about the value beside it. */
function redactEntry(_name: string, value: unknown): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null || !("key" in value) || !("value" in value)) return value;
  return isSecretKey(String(value.key)) ? { key: value.key, value: { stringValue: REDACTED } } : value;
}
