// Spans as OTLP JSON (https://opentelemetry.io/docs/specs/otlp): one writer for everything that leaves this SDK. Pure.

export interface OtlpSpan {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | undefined;
  readonly name: string;
  /** OTLP's numbers: 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  /** Nanoseconds since the epoch, as text. `end` is "0" while the span runs. */
  readonly start: string;
  readonly end: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { name: string; time: string; attributes: Readonly<Record<string, unknown>> }[];
  readonly links: readonly { trace_id: string; span_id: string; attributes: Readonly<Record<string, unknown>> }[];
  /** 0 unset, 1 ok, 2 error. */
  readonly status: { readonly code: number; readonly message?: string | undefined };
}

function anyValue(value: unknown): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") return Number.isInteger(value) ? { intValue: value } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } };
  return { stringValue: JSON.stringify(value) ?? "" };
}

/** Attributes as OTLP lists them. */
export function keyValues(attributes: Readonly<Record<string, unknown>>): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function spanOf(span: OtlpSpan): object {
  return {
    traceId: span.trace_id,
    spanId: span.span_id,
    parentSpanId: span.parent_span_id,
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: span.start,
    endTimeUnixNano: span.end,
    attributes: keyValues(span.attributes),
    events:
      span.events.length === 0
        ? undefined
        : span.events.map(({ name, time, attributes }) => ({ timeUnixNano: time, name, attributes: keyValues(attributes) })),
    links:
      span.links.length === 0
        ? undefined
        : span.links.map(({ trace_id, span_id, attributes }) => ({
            traceId: trace_id,
            spanId: span_id,
            attributes: keyValues(attributes),
          })),
    status: span.status,
  };
}

/** An export request. `spans` by the service that made them. */
export function traceRequest(spans: ReadonlyMap<string, readonly OtlpSpan[]>): string {
  const resourceSpans = [...spans].map(([service, members]) => ({
    resource: { attributes: keyValues({ "service.name": service }) },
    scopeSpans: [{ scope: { name: "@iii/sdk" }, spans: members.map(spanOf) }],
  }));
  return JSON.stringify({ resourceSpans });
}
