// Where finished and started OpenTelemetry spans go: batched into OTLP JSON, to the engine
// (which redacts all it takes in) and, redacted here, to a collector if one is asked for.

import type { JsonTraceSerializer as Serializer } from "@opentelemetry/otlp-transformer";
import type { NodeSDK } from "@opentelemetry/sdk-node";
import { isSecretKey, REDACTED, redactText } from "../redact.ts";
import { type TelemetryLink, telemetryFrame } from "./link.ts";

export type SpanProcessor = NonNullable<NonNullable<ConstructorParameters<typeof NodeSDK>[0]>["spanProcessors"]>[number];
type ReadableSpan = Parameters<SpanProcessor["onEnd"]>[0];
type StartedSpan = Parameters<SpanProcessor["onStart"]>[0];

const BATCH_MS = 100;
const MAX_BATCH = 512;

export interface ExporterOptions {
  readonly link: TelemetryLink;
  readonly serializer: typeof Serializer;
  /** A collector's traces endpoint, when the standard environment names one. */
  readonly collector: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * A span that is still running at the end of the event-loop turn in which it started is sent at once, with end 0, so that a process
 * that dies leaves a trace of it. Ended spans follow in batches.
 */
export class SpanExporter implements SpanProcessor {
  readonly #options: ExporterOptions;
  readonly #started = new Map<string, StartedSpan>();
  readonly #resources = new Resources();
  #ended: ReadableSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #snapshotDue = false;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  onStart(span: StartedSpan): void {
    this.#started.set(span.spanContext().spanId, span);
    if (this.#snapshotDue) return;
    this.#snapshotDue = true;
    setImmediate(() => this.#snapshot());
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
    const json = this.#encode(batch, false);
    if (json === undefined) return;
    this.#options.link.send(telemetryFrame("OTLP", json));
    await this.#collect(json);
  }

  async shutdown(): Promise<void> {
    await this.forceFlush();
  }

  #snapshot(): void {
    this.#snapshotDue = false;
    const running = [...this.#started.values()];
    this.#started.clear();
    if (running.length === 0) return;
    const json = this.#encode(running, true);
    if (json !== undefined) this.#options.link.send(telemetryFrame("OTLP", json));
  }

  #encode(spans: readonly ReadableSpan[], running: boolean): Uint8Array | undefined {
    return this.#options.serializer.serializeRequest(spans.map((span) => present(span, running, this.#resources.of(span))));
  }

  /** A collector that is away loses spans, never work. */
  async #collect(json: Uint8Array): Promise<void> {
    const { collector, headers } = this.#options;
    if (collector === undefined) return;
    try {
      const body = redactOtlp(new TextDecoder().decode(json));
      const signal = AbortSignal.timeout(5_000);
      await fetch(collector, { method: "POST", headers: { "content-type": "application/json", ...headers }, body, signal });
    } catch {
      // Nothing to convert it to: telemetry about lost telemetry would be lost the same way.
    }
  }
}

/** The attribute by which a span says which worker of the process made it. Becomes `service.name` on the way out. */
export const SERVICE = "iii.service";

type Resource = ReadableSpan["resource"];

/** One resource per worker of the process; the serializer groups by identity. */
class Resources {
  readonly #known = new Map<string, Resource>();

  of(span: ReadableSpan): Resource {
    const service = span.attributes[SERVICE];
    if (typeof service !== "string") return span.resource;
    const known = this.#known.get(service);
    if (known !== undefined) return known;
    const resource: Resource = {
      attributes: { ...span.resource.attributes, "service.name": service },
      merge: (other) => other ?? resource,
      getRawAttributes: () => Object.entries(resource.attributes),
    };
    this.#known.set(service, resource);
    return resource;
  }
}

/** A plain copy: of a running span it has no end yet. */
function present(span: ReadableSpan, running: boolean, resource: Resource): ReadableSpan {
  const { [SERVICE]: _, ...attributes } = span.attributes;
  return {
    name: span.name,
    kind: span.kind,
    spanContext: () => span.spanContext(),
    ...(span.parentSpanContext === undefined ? {} : { parentSpanContext: span.parentSpanContext }),
    startTime: span.startTime,
    endTime: running ? [0, 0] : span.endTime,
    status: span.status,
    attributes,
    links: [...span.links],
    events: [...span.events],
    duration: running ? [0, 0] : span.duration,
    ended: !running,
    resource,
    instrumentationScope: span.instrumentationScope,
    droppedAttributesCount: span.droppedAttributesCount,
    droppedEventsCount: span.droppedEventsCount,
    droppedLinksCount: span.droppedLinksCount,
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
