// What the recorders of this process hand over, as it is stored.

import type { RecordedSpan, SpanEventData } from "@iii/sdk";
import type { LogRecord } from "@iii/sdk/trace";
import type { SpanEvent, StoredLog, StoredSpan } from "./contract.ts";

const nano = (ms: number): number => Math.round(ms * 1e6);

const eventOf = ({ name, time_ms, attributes }: SpanEventData): SpanEvent => ({
  name,
  timestamp_unix_nano: nano(time_ms),
  attributes: Object.entries(attributes),
});

export function storedSpan(span: RecordedSpan): StoredSpan {
  return {
    trace_id: span.trace_id,
    span_id: span.span_id,
    parent_span_id: span.parent_span_id ?? null,
    name: span.name,
    start_time_unix_nano: nano(span.start_ms),
    end_time_unix_nano: nano(span.end_ms),
    status: span.status,
    ...(span.description === undefined ? {} : { status_description: span.description }),
    attributes: Object.entries(span.attributes),
    service_name: span.service,
    events: span.events.map(eventOf),
    links: span.links.map((link) => ({ ...link, trace_state: null, attributes: [] })),
    instrumentation_scope_name: "@iii/sdk",
    ...(span.end_ms === 0 ? { pending: true as const } : {}),
  };
}

export function storedLog(record: LogRecord): StoredLog {
  return {
    timestamp_unix_nano: nano(record.time_ms),
    observed_timestamp_unix_nano: nano(record.time_ms),
    severity_number: record.severity,
    severity_text: record.level,
    body: record.body,
    attributes: { ...record.attributes },
    trace_id: record.trace_id ?? null,
    span_id: record.span_id ?? null,
    resource: {},
    service_name: record.service,
    instrumentation_scope_name: "@iii/sdk",
  };
}
