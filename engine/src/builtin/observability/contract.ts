// engine::traces::*, engine::logs::*, engine::log::*, engine::baggage::* and engine::health::check: what is observed, and how it is read.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

/** Nanoseconds since the epoch. Above 2^53, so only good to about 256 ns. */
const Nanos = z.number();
const Attributes = z.array(z.tuple([z.string(), z.string()]));

export const SpanEvent = z.object({ name: z.string(), timestamp_unix_nano: Nanos, attributes: Attributes });
export type SpanEvent = z.infer<typeof SpanEvent>;
export const SpanLink = z.object({ trace_id: z.string(), span_id: z.string(), trace_state: z.string().nullable(), attributes: Attributes });
export type SpanLink = z.infer<typeof SpanLink>;

export const StoredSpan = z.object({
  trace_id: z.string(),
  span_id: z.string(),
  parent_span_id: z.string().nullable(),
  name: z.string(),
  start_time_unix_nano: Nanos,
  end_time_unix_nano: Nanos,
  status: z.enum(["unset", "ok", "error"]),
  status_description: z.string().optional(),
  attributes: Attributes,
  service_name: z.string(),
  events: z.array(SpanEvent),
  links: z.array(SpanLink),
  instrumentation_scope_name: z.string().optional(),
  instrumentation_scope_version: z.string().optional(),
  flags: z.int().optional(),
  trace_state: z.string().optional(),
  /** Still running: the end is 0. */
  pending: z.literal(true).optional(),
});
export type StoredSpan = z.infer<typeof StoredSpan>;

export interface SpanNode extends StoredSpan {
  children: SpanNode[];
}
export const SpanNode: z.ZodType<SpanNode> = StoredSpan.extend({
  get children() {
    return z.array(SpanNode);
  },
});

export const StoredLog = z.object({
  timestamp_unix_nano: Nanos,
  observed_timestamp_unix_nano: Nanos,
  severity_number: z.int(),
  severity_text: z.string(),
  body: z.string(),
  attributes: z.record(z.string(), z.unknown()),
  trace_id: z.string().nullable(),
  span_id: z.string().nullable(),
  resource: z.record(z.string(), z.string()),
  service_name: z.string(),
  instrumentation_scope_name: z.string().optional(),
  instrumentation_scope_version: z.string().optional(),
});
export type StoredLog = z.infer<typeof StoredLog>;

export const TraceStorage = z.object({
  archive: z.enum(["healthy", "disabled", "degraded"]),
  completeness: z.enum(["complete", "partial", "unknown"]),
  known_dropped_spans: z.int(),
  physical_bytes: z.int(),
  max_disk_bytes: z.int(),
  last_error: z.string().nullable(),
});
export type TraceStorage = z.infer<typeof TraceStorage>;

const Pairs = z.array(z.tuple([z.string(), z.string()]));

export const tracesList = defineFunction({
  id: "engine::traces::list",
  about: "Spans that match a filter; without `search_all_spans` only those whose parent does not match.",
  input: z.object({
    trace_id: z.string().optional(),
    trace_ids: z.array(z.string()).optional(),
    offset: z.int().nonnegative().default(0),
    limit: z.int().nonnegative().default(100),
    service_name: z.string().optional(),
    name: z.string().optional(),
    status: z.string().optional(),
    min_duration_ms: z.number().optional(),
    max_duration_ms: z.number().optional(),
    start_time: z.number().optional(),
    end_time: z.number().optional(),
    sort_by: z.enum(["start_time", "duration", "service_name", "name"]).default("start_time"),
    sort_order: z.enum(["asc", "desc"]).default("asc"),
    attributes: Pairs.optional(),
    exclude_attributes: Pairs.optional(),
    include_internal: z.boolean().default(false),
    search_all_spans: z.boolean().default(false),
  }),
  output: z.object({
    spans: z.array(StoredSpan.extend({ trace_tags: z.record(z.string(), z.string()).optional() })),
    total: z.int(),
    offset: z.int(),
    limit: z.int(),
    storage: TraceStorage,
  }),
  effect: "none",
  parallel: true,
});
export const tracesTree = defineFunction({
  id: "engine::traces::tree",
  about: "One trace as a tree. A parent that never arrived stands as a span marked lost, so nothing is an orphan.",
  input: z.object({ trace_id: z.string().min(1) }),
  output: z.object({ roots: z.array(SpanNode), storage: TraceStorage }),
  effect: "none",
  parallel: true,
});
export const tracesGroupBy = defineFunction({
  id: "engine::traces::group_by",
  about: "Spans grouped by the value of one attribute, e.g. iii.session.id; the newest group first.",
  input: z.object({
    attribute: z.string().min(1),
    since_ms: z.number().optional(),
    limit: z.int().nonnegative().default(100),
    include_internal: z.boolean().default(false),
    label_attribute: z.string().optional(),
  }),
  output: z.object({
    groups: z.array(
      z.object({
        value: z.string(),
        label: z.string().nullable(),
        trace_ids: z.array(z.string()),
        span_count: z.int(),
        first_seen_ms: z.number(),
        last_seen_ms: z.number(),
        duration_ms: z.number(),
        error_count: z.int(),
      }),
    ),
    storage: TraceStorage,
  }),
  effect: "none",
  parallel: true,
});
export const tracesClear = defineFunction({
  id: "engine::traces::clear",
  about: "Forget every span.",
  input: z.object({}),
  output: z.object({ success: z.literal(true) }),
});
export const logsList = defineFunction({
  id: "engine::logs::list",
  about: "Log records, newest first.",
  input: z.object({
    start_time: z.number().optional(),
    end_time: z.number().optional(),
    trace_id: z.string().optional(),
    span_id: z.string().optional(),
    severity_min: z.int().optional(),
    severity_text: z.string().optional(),
    offset: z.int().nonnegative().default(0),
    limit: z.int().nonnegative().default(100),
  }),
  output: z.object({ logs: z.array(StoredLog), total: z.int(), timestamp: z.number() }),
  effect: "none",
  parallel: true,
});
export const logsClear = defineFunction({
  id: "engine::logs::clear",
  about: "Forget every log record.",
  input: z.object({}),
  output: z.object({ success: z.boolean() }),
});

const LogInput = z.object({
  message: z.string(),
  data: z.unknown().optional(),
  trace_id: z.string().optional(),
  span_id: z.string().optional(),
  service_name: z.string().optional(),
});
const logAt = <L extends string>(level: L) =>
  defineFunction({
    id: `engine::log::${level}`,
    about: `Write a log record of level ${level}.`,
    input: LogInput,
    output: z.null(),
  });
export const logInfo = logAt("info");
export const logWarn = logAt("warn");
export const logError = logAt("error");
export const logDebug = logAt("debug");
export const logTrace = logAt("trace");

export const baggageGet = defineFunction({
  id: "engine::baggage::get",
  about: "One entry of the call's own baggage.",
  input: z.object({ key: z.string() }),
  output: z.object({ value: z.string().nullable() }),
  effect: "none",
});
export const baggageSet = defineFunction({
  id: "engine::baggage::set",
  about: "Answers how baggage is set; the baggage of a call already made cannot change.",
  input: z.object({ key: z.string(), value: z.string() }),
  output: z.object({ success: z.literal(true), note: z.string() }),
  effect: "none",
});
export const baggageGetAll = defineFunction({
  id: "engine::baggage::get_all",
  about: "The call's own baggage.",
  input: z.object({}),
  output: z.object({ baggage: z.record(z.string(), z.string()) }),
  effect: "none",
});

const Component = z.object({ status: z.enum(["healthy", "disabled"]), details: z.unknown() });
export const healthCheck = defineFunction({
  id: "engine::health::check",
  about: "Whether what observes the engine works.",
  input: z.object({}),
  output: z.object({
    status: z.enum(["healthy", "degraded"]),
    components: z.object({ otel: Component, metrics: Component, logs: Component, spans: Component }),
    timestamp: z.number(),
    version: z.string(),
  }),
  effect: "none",
});
