// OTLP JSON as it arrives in telemetry frames, read forgivingly: a bad entry is skipped, never an exception. Pure.
import type { SpanEvent, SpanLink, StoredLog, StoredSpan } from "./contract.ts";

type Dict = Readonly<Record<string, unknown>>;

const dict = (value: unknown): Dict => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Dict) : {});
const list = (value: unknown): readonly Dict[] => (Array.isArray(value) ? value.map(dict) : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const nanos = (value: unknown): number => {
  const number = typeof value === "string" || typeof value === "number" ? Number(value) : 0;
  return Number.isFinite(number) ? number : 0;
};

/** An id, or undefined for the empty and the all-zero one. */
function id(value: unknown): string | undefined {
  const found = text(value).toLowerCase();
  return found === "" || /^0+$/.test(found) ? undefined : found;
}

/** One OTLP `AnyValue` as a JSON value. 64-bit integers come as text or number. */
function anyValue(value: unknown): unknown {
  const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue } = dict(value);
  if (stringValue !== undefined) return stringValue;
  if (boolValue !== undefined) return boolValue;
  if (intValue !== undefined) return Number(intValue);
  if (doubleValue !== undefined) return doubleValue;
  if (arrayValue !== undefined) return list(dict(arrayValue)["values"]).map(anyValue);
  if (kvlistValue !== undefined)
    return Object.fromEntries(list(dict(kvlistValue)["values"]).map((entry) => [text(entry["key"]), anyValue(entry["value"])]));
  return null;
}

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function pairs(value: unknown): [string, string][] {
  return list(value).map((entry) => [text(entry["key"]), asText(anyValue(entry["value"]))]);
}

function entries(value: unknown): Record<string, unknown> {
  return Object.fromEntries(list(value).map((entry) => [text(entry["key"]), anyValue(entry["value"])]));
}

interface Scope {
  readonly service: string;
  readonly resource: Record<string, string>;
  readonly name: string;
  readonly version: string;
}

/** Walks resource → scope → records; both signals nest the same way. */
function walk(resources: unknown, scopesKey: string, recordsKey: string): { scope: Scope; record: Dict }[] {
  return list(resources).flatMap((entry) => {
    const resource = Object.fromEntries(pairs(dict(entry["resource"])["attributes"]));
    return list(entry[scopesKey]).flatMap((group) => {
      const { name, version } = dict(group["scope"]);
      const scope: Scope = { service: resource["service.name"] ?? "unknown", resource, name: text(name), version: text(version) };
      return list(group[recordsKey]).map((record) => ({ scope, record }));
    });
  });
}

function scopeFields(scope: Scope): Pick<StoredSpan, "instrumentation_scope_name" | "instrumentation_scope_version"> {
  return {
    ...(scope.name === "" ? {} : { instrumentation_scope_name: scope.name }),
    ...(scope.version === "" ? {} : { instrumentation_scope_version: scope.version }),
  };
}

const STATUS = ["unset", "ok", "error"] as const;
const STATUS_NAMES: Readonly<Record<string, number>> = { STATUS_CODE_UNSET: 0, STATUS_CODE_OK: 1, STATUS_CODE_ERROR: 2 };

function statusOf(value: unknown): Pick<StoredSpan, "status" | "status_description"> {
  const { code, message } = dict(value);
  const number = typeof code === "string" ? (STATUS_NAMES[code] ?? Number(code)) : code;
  const status = STATUS[typeof number === "number" ? number : 0] ?? "unset";
  return { status, ...(text(message) === "" ? {} : { status_description: text(message) }) };
}

const eventOf = (event: Dict): SpanEvent => ({
  name: text(event["name"]),
  timestamp_unix_nano: nanos(event["timeUnixNano"]),
  attributes: pairs(event["attributes"]),
});

const linkOf = (link: Dict): SpanLink => ({
  trace_id: text(link["traceId"]).toLowerCase(),
  span_id: text(link["spanId"]).toLowerCase(),
  trace_state: text(link["traceState"]) || null,
  attributes: pairs(link["attributes"]),
});

function spanOf({ scope, record }: { scope: Scope; record: Dict }): StoredSpan | undefined {
  const trace_id = id(record["traceId"]);
  const span_id = id(record["spanId"]);
  if (trace_id === undefined || span_id === undefined) return undefined;
  const end = nanos(record["endTimeUnixNano"]);
  return {
    trace_id,
    span_id,
    parent_span_id: id(record["parentSpanId"]) ?? null,
    name: text(record["name"]),
    start_time_unix_nano: nanos(record["startTimeUnixNano"]),
    end_time_unix_nano: end,
    ...statusOf(record["status"]),
    attributes: pairs(record["attributes"]),
    service_name: scope.service,
    events: list(record["events"]).map(eventOf),
    links: list(record["links"]).map(linkOf),
    ...scopeFields(scope),
    ...(typeof record["flags"] === "number" ? { flags: record["flags"] } : {}),
    ...(text(record["traceState"]) === "" ? {} : { trace_state: text(record["traceState"]) }),
    ...(end === 0 ? { pending: true as const } : {}),
  };
}

const SEVERITIES = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"] as const;

/** OTLP numbers severities in groups of four: 9 to 12 is INFO. */
export function severityText(number: number): string {
  return SEVERITIES[Math.floor((number - 1) / 4)] ?? "INFO";
}

function logOf({ scope, record }: { scope: Scope; record: Dict }): StoredLog {
  const number = typeof record["severityNumber"] === "number" ? record["severityNumber"] : 9;
  const attributes = entries(record["attributes"]);
  const body = anyValue(record["body"]);
  const time = nanos(record["timeUnixNano"]);
  return {
    timestamp_unix_nano: time,
    observed_timestamp_unix_nano: nanos(record["observedTimeUnixNano"]) || time,
    severity_number: number,
    severity_text: text(record["severityText"]) || severityText(number),
    body: body === null ? "" : asText(body),
    attributes,
    trace_id: id(record["traceId"]) ?? id(attributes["trace_id"]) ?? null,
    span_id: id(record["spanId"]) ?? id(attributes["span_id"]) ?? null,
    resource: scope.resource,
    service_name: scope.service,
    ...scopeFields(scope),
  };
}

export interface Batch {
  readonly spans: readonly StoredSpan[];
  readonly logs: readonly StoredLog[];
}

const decoder = new TextDecoder();

/** One telemetry frame. Undefined when it is not one: unknown letters or no JSON. */
export function readFrame(frame: Uint8Array): Batch | undefined {
  const kind = decoder.decode(frame.subarray(0, 4));
  if (kind === "MTRC") return { spans: [], logs: [] };
  if (kind !== "OTLP" && kind !== "LOGS") return undefined;
  let body: Dict;
  try {
    body = dict(JSON.parse(decoder.decode(frame.subarray(4))));
  } catch {
    return undefined;
  }
  const spans = walk(body["resourceSpans"], "scopeSpans", "spans").flatMap((entry) => spanOf(entry) ?? []);
  return { spans, logs: walk(body["resourceLogs"], "scopeLogs", "logRecords").map(logOf) };
}
