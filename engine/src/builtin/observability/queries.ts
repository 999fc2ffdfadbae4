// What traces::list and traces::group_by answer, computed from spans. Pure.
import type { z } from "zod";
import type { StoredSpan, tracesGroupBy, tracesList } from "./contract.ts";

type ListInput = z.output<typeof tracesList.input>;
type GroupInput = z.output<typeof tracesGroupBy.input>;
type Group = z.output<typeof tracesGroupBy.output>["groups"][number];
export type ListedSpan = StoredSpan & { trace_tags?: Record<string, string> };

const NANOS_PER_MS = 1e6;
const TAGS: ReadonlySet<string> = new Set(["iii.session.id", "iii.session.name", "iii.message.id"]);

export function attribute(span: StoredSpan, name: string): string | undefined {
  return span.attributes.find(([key]) => key === name)?.[1];
}

/** The engine's own housekeeping, hidden unless asked for. */
function isInternal(span: StoredSpan): boolean {
  if (attribute(span, "iii.function.kind") === "internal") return true;
  const function_id = attribute(span, "function_id") ?? attribute(span, "iii.function.id") ?? "";
  return function_id.startsWith("engine::");
}

function tagsOf(span: StoredSpan): { trace_tags?: Record<string, string> } {
  const tags = span.attributes.filter(([key]) => key.startsWith("iii.tag.") || TAGS.has(key));
  return tags.length === 0 ? {} : { trace_tags: Object.fromEntries(tags) };
}

const contains = (text: string, part: string | undefined): boolean => part === undefined || text.toLowerCase().includes(part.toLowerCase());
const within = (value: number, min: number | undefined, max: number | undefined): boolean =>
  value >= (min ?? -Infinity) && value <= (max ?? Infinity);
const durationMs = (span: StoredSpan): number => Math.max(0, span.end_time_unix_nano - span.start_time_unix_nano) / NANOS_PER_MS;
const startMs = (span: StoredSpan): number => span.start_time_unix_nano / NANOS_PER_MS;

function has(span: StoredSpan, [name, value]: readonly [string, string]): boolean {
  return span.attributes.some(([key, found]) => key === name && found === value);
}

/** One test per filter; a span must pass all. */
function filters(input: ListInput): ((span: StoredSpan) => boolean)[] {
  const ids = new Set([...(input.trace_ids ?? []), ...(input.trace_id === undefined ? [] : [input.trace_id])]);
  return [
    (span) => ids.size === 0 || ids.has(span.trace_id),
    (span) => input.include_internal || !isInternal(span),
    (span) => contains(span.service_name, input.service_name) && contains(span.name, input.name) && contains(span.status, input.status),
    (span) => within(durationMs(span), input.min_duration_ms, input.max_duration_ms),
    (span) => within(startMs(span), input.start_time, input.end_time),
    (span) => (input.attributes ?? []).every((pair) => has(span, pair)),
    (span) => !(input.exclude_attributes ?? []).some((pair) => has(span, pair)),
  ];
}

const ORDERS: Record<ListInput["sort_by"], (a: StoredSpan, b: StoredSpan) => number> = {
  start_time: (a, b) => a.start_time_unix_nano - b.start_time_unix_nano,
  duration: (a, b) => durationMs(a) - durationMs(b),
  service_name: (a, b) => a.service_name.localeCompare(b.service_name),
  name: (a, b) => a.name.localeCompare(b.name),
};

export function listSpans(spans: readonly StoredSpan[], input: ListInput): { spans: ListedSpan[]; total: number } {
  const tests = filters(input);
  const matching = spans.filter((span) => tests.every((test) => test(span)));
  const present = new Set(matching.map((span) => `${span.trace_id}/${span.span_id}`));
  const isRoot = (span: StoredSpan): boolean => span.parent_span_id === null || !present.has(`${span.trace_id}/${span.parent_span_id}`);
  const wanted = input.search_all_spans ? matching : matching.filter(isRoot);
  const direction = input.sort_order === "desc" ? -1 : 1;
  const sorted = wanted.toSorted((a, b) => direction * ORDERS[input.sort_by](a, b));
  const page = sorted.slice(input.offset, input.offset + input.limit);
  return { spans: page.map((span) => ({ ...span, ...tagsOf(span) })), total: wanted.length };
}

function labelOf(spans: readonly StoredSpan[], name: string | undefined): string | null {
  if (name === undefined) return null;
  const labelled = spans.filter((span) => attribute(span, name) !== undefined).toSorted(ORDERS.start_time);
  const newest = labelled.at(-1);
  return newest === undefined ? null : (attribute(newest, name) ?? null);
}

function groupOf(value: string, spans: readonly StoredSpan[], label: string | undefined): Group {
  const first = Math.min(...spans.map(startMs));
  const last = Math.max(...spans.map((span) => Math.max(span.end_time_unix_nano, span.start_time_unix_nano) / NANOS_PER_MS));
  return {
    value,
    label: labelOf(spans, label),
    trace_ids: [...new Set(spans.map((span) => span.trace_id))].sort(),
    span_count: spans.length,
    first_seen_ms: first,
    last_seen_ms: last,
    duration_ms: last - first,
    error_count: spans.filter((span) => span.status === "error").length,
  };
}

function isGrouped(span: StoredSpan, { include_internal, since_ms }: GroupInput): boolean {
  if (!include_internal && isInternal(span)) return false;
  // A span that still runs is as recent as can be.
  return span.pending === true || span.end_time_unix_nano / NANOS_PER_MS >= (since_ms ?? -Infinity);
}

export function groupSpans(spans: readonly StoredSpan[], input: GroupInput): Group[] {
  const groups = new Map<string, StoredSpan[]>();
  for (const span of spans) {
    const value = attribute(span, input.attribute);
    if (value === undefined || !isGrouped(span, input)) continue;
    const members = groups.get(value);
    if (members === undefined) groups.set(value, [span]);
    else members.push(span);
  }
  const rows = [...groups].map(([value, members]) => groupOf(value, members, input.label_attribute));
  return rows.sort((a, b) => b.first_seen_ms - a.first_seen_ms).slice(0, input.limit);
}
