// Spans as OTLP JSON (https://opentelemetry.io/docs/specs/otlp): one writer for everything that leaves this SDK. Pure.
import type { RecordedSpan } from "./recorder.ts";

const KINDS = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const;
const STATUS = { unset: 0, ok: 1, error: 2 } as const;

/** Milliseconds as the text of nanoseconds: a double does not hold them. */
export function nanoText(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.round((ms - whole) * 1e6))
    .padStart(6, "0")
    .slice(0, 6)}`;
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

/** The text of one span, ended or (end 0) still running. Of a running one only what names and places it: the rest comes with its end. */
export function spanText(span: RecordedSpan): string {
  const running = span.end_ms === 0;
  return JSON.stringify({
    traceId: span.trace_id,
    spanId: span.span_id,
    parentSpanId: span.parent_span_id,
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: nanoText(span.start_ms),
    endTimeUnixNano: running ? "0" : nanoText(span.end_ms),
    attributes: keyValues(span.attributes),
    events:
      running || span.events.length === 0
        ? undefined
        : span.events.map((event) => ({
            timeUnixNano: nanoText(event.time_ms),
            name: event.name,
            attributes: keyValues(event.attributes),
          })),
    links: span.links.length === 0 ? undefined : span.links.map((link) => ({ traceId: link.trace_id, spanId: link.span_id })),
    status: { code: STATUS[span.status], message: span.description },
  });
}

/** An export request. `spans`: their texts, by the service that made them. */
export function traceRequest(spans: ReadonlyMap<string, readonly string[]>): string {
  const resourceSpans = [...spans].map(([service, texts]) => {
    const resource = JSON.stringify({ attributes: keyValues({ "service.name": service }) });
    return `{"resource":${resource},"scopeSpans":[{"scope":{"name":"@iii/sdk"},"spans":[${texts.join(",")}]}]}`;
  });
  return `{"resourceSpans":[${resourceSpans.join(",")}]}`;
}
