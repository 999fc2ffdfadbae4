// A trace as rows to draw: depth, place and length of each bar, lost spans marked, waiting time told apart from work. Pure.

export interface TraceSpan {
  readonly trace_id: string;
  readonly span_id: string;
  readonly name: string;
  readonly start_time_unix_nano: number;
  readonly end_time_unix_nano: number;
  readonly status: string;
  readonly status_description?: string | undefined;
  readonly attributes: readonly (readonly [string, unknown])[];
  readonly service_name: string;
  readonly pending?: boolean | undefined;
  readonly children?: readonly TraceSpan[] | undefined;
}

export type RowState = "ok" | "error" | "lost" | "running";
export type Kind = "model" | "function" | "approval" | "policy" | "queue" | "state" | "turn" | "other";

export interface Row {
  readonly span: TraceSpan;
  readonly depth: number;
  readonly parent: string | undefined;
  readonly children: number;
  readonly start_ms: number;
  readonly duration_ms: number;
  readonly state: RowState;
  readonly kind: Kind;
}

export interface Gap {
  readonly start_ms: number;
  readonly duration_ms: number;
  /** Whether a human's decision ended it. */
  readonly approval: boolean;
}

export interface Timeline {
  readonly rows: readonly Row[];
  readonly gaps: readonly Gap[];
  readonly start_unix_ms: number;
  readonly total_ms: number;
  readonly errors: number;
  readonly lost: number;
  readonly services: readonly string[];
}

const KINDS: readonly (readonly [RegExp, Kind])[] = [
  [/::fanout::|^call engine::|^execute ui::/, "state"],
  [/approval/, "approval"],
  [/provider::/, "model"],
  [/policy::/, "policy"],
  [/queue|enqueue/, "queue"],
  [/state::|state_triggers|stream::|stream_triggers|session-tree::/, "state"],
  [/turn::|run::|harness::/, "turn"],
  [/execute |call |trigger /, "function"],
];

/** Lays a tree out. `now_ms` ends the bars of spans that still run. */
export function timeline(roots: readonly TraceSpan[], now_ms: number): Timeline {
  const spans = flatten(roots);
  const start = Math.min(...spans.map(({ span }) => span.start_time_unix_nano / 1e6));
  const rows = spans.map(({ span, depth, parent }) => row(span, depth, parent, start, now_ms));
  const total = Math.max(0.001, ...rows.map((r) => r.start_ms + r.duration_ms));
  return {
    rows,
    gaps: gaps(rows, total),
    start_unix_ms: spans.length === 0 ? now_ms : start,
    total_ms: total,
    errors: rows.filter((r) => r.state === "error").length,
    lost: rows.filter((r) => r.state === "lost").length,
    services: [...new Set(rows.map((r) => r.span.service_name))],
  };
}

interface Placed {
  readonly span: TraceSpan;
  readonly depth: number;
  readonly parent: string | undefined;
}

/** Depth first, children by start; without recursion, so that a deep chain cannot overflow the stack. */
function flatten(roots: readonly TraceSpan[]): readonly Placed[] {
  const out: Placed[] = [];
  const todo: Placed[] = byStart(roots)
    .map((span) => ({ span, depth: 0, parent: undefined }))
    .reverse();
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    out.push(next);
    const { span, depth } = next;
    todo.push(
      ...byStart(span.children ?? [])
        .map((child) => ({ span: child, depth: depth + 1, parent: span.span_id }))
        .reverse(),
    );
  }
  return out;
}

function byStart(spans: readonly TraceSpan[]): readonly TraceSpan[] {
  return [...spans].sort((a, b) => a.start_time_unix_nano - b.start_time_unix_nano);
}

function row(span: TraceSpan, depth: number, parent: string | undefined, origin: number, now_ms: number): Row {
  const start = span.start_time_unix_nano / 1e6;
  const running = span.pending === true || span.end_time_unix_nano === 0;
  const end = running ? Math.max(now_ms, start) : span.end_time_unix_nano / 1e6;
  return {
    span,
    depth,
    parent,
    children: span.children?.length ?? 0,
    start_ms: start - origin,
    duration_ms: Math.max(0, end - start),
    state: stateOf(span, running),
    kind: KINDS.find(([pattern]) => pattern.test(span.name))?.[1] ?? "other",
  };
}

function stateOf(span: TraceSpan, running: boolean): RowState {
  if (span.attributes.some(([key, value]) => key === "iii.span.lost" && String(value) === "true")) return "lost";
  if (running) return "running";
  return span.status.toLowerCase() === "error" ? "error" : "ok";
}

/** Stretches in which nothing ran: nobody worked, somebody was waited for. Short ones are scheduling, not waiting. */
function gaps(rows: readonly Row[], total: number): readonly Gap[] {
  const least = Math.max(250, total * 0.02);
  const work = rows.map((r) => ({ from: r.start_ms, to: r.start_ms + r.duration_ms })).sort((a, b) => a.from - b.from);
  const found: Gap[] = [];
  let covered = 0;
  for (const { from, to } of work) {
    if (from - covered >= least) found.push({ start_ms: covered, duration_ms: from - covered, approval: endedByDecision(rows, from) });
    covered = Math.max(covered, to);
  }
  return found;
}

function endedByDecision(rows: readonly Row[], at_ms: number): boolean {
  return rows.some((r) => r.kind === "approval" && r.start_ms >= at_ms - 100 && r.start_ms <= at_ms + 500);
}

/** The trace id inside a W3C `traceparent`. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent ?? "")?.[1];
}

/** The attributes as a plain object, for display. */
export function attributesOf(span: TraceSpan): Record<string, string> {
  return Object.fromEntries(span.attributes.map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]));
}

/**
 * The rows to draw: without what is below collapsed rows and, unless `all`, without quiet subtrees: storage, fan-out and engine
 * look-ups that went well and led to nothing else. `quiet` counts those spans.
 */
export function shownRows(rows: readonly Row[], collapsed: ReadonlySet<string>, all: boolean): { rows: readonly Row[]; quiet: number } {
  const quiet = quietSpans(rows);
  const hidden = new Set<string>();
  const shown = rows.filter(({ span, parent }) => {
    const below = parent !== undefined && (hidden.has(parent) || collapsed.has(parent));
    if (below || (!all && quiet.has(span.span_id))) hidden.add(span.span_id);
    return !hidden.has(span.span_id);
  });
  return { rows: shown, quiet: quiet.size };
}

/** Children stand after their parents, so one pass from the end knows a span's whole subtree. */
function quietSpans(rows: readonly Row[]): ReadonlySet<string> {
  const quiet = new Set<string>();
  const loud = new Set<string>();
  for (const { span, parent, kind, state } of rows.toReversed()) {
    if (kind === "state" && state === "ok" && !loud.has(span.span_id)) quiet.add(span.span_id);
    else if (parent !== undefined) loud.add(parent);
  }
  return quiet;
}
