// W3C trace context as text. Malformed values read as absent.

export interface TraceParent {
  readonly trace_id: string;
  readonly span_id: string;
  readonly sampled: boolean;
}

/** Version 00 has four parts; a later one may have more. */
const SHAPE =
  /^(?:00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$|(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$))/;

export function parseTraceparent(text: string | undefined): TraceParent | undefined {
  const found = text === undefined ? null : SHAPE.exec(text);
  if (found === null) return undefined;
  const trace_id = found[1] ?? found[4] ?? "";
  const span_id = found[2] ?? found[5] ?? "";
  const flags = found[3] ?? found[6] ?? "00";
  if (/^0+$/.test(trace_id) || /^0+$/.test(span_id)) return undefined;
  return { trace_id, span_id, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The same context, for work that leaves no spans. What cannot be read is handed on as it is. */
export function unsampled(traceparent: string | undefined): string | undefined {
  const context = parseTraceparent(traceparent);
  return context?.sampled === true ? formatTraceparent({ ...context, sampled: false }) : traceparent;
}

export function formatTraceparent(context: TraceParent): string {
  return `00-${context.trace_id}-${context.span_id}-${context.sampled ? "01" : "00"}`;
}
