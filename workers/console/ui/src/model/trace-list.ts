// The traces of a session as a list: one row per turn, newest first, each named by the message that started it. Pure.
import type { AgentMessage } from "@iii/contracts";
import { textOf } from "./calls.ts";
import { headline } from "./text.ts";

export interface TraceRow {
  readonly trace_id: string;
  readonly name: string;
  readonly start_ms: number;
}

/** What is read of a span of the list. `trace_tags` say what the whole trace is about. */
export interface ListedSpan {
  readonly trace_id: string;
  readonly name: string;
  readonly start_time_unix_nano: number;
  readonly trace_tags?: Readonly<Record<string, string>> | undefined;
}

/** Calls that start a turn, as they name the first span of its trace. */
const STARTS = /harness::trigger|run::start|\/harness\/trigger/;

/** One row per turn. Traces that carry a session but no message are look-ups, by this page among others. */
export function traceRows(spans: readonly ListedSpan[]): readonly TraceRow[] {
  const first = new Map<string, ListedSpan>();
  const turns = new Set<string>();
  for (const span of spans) {
    const known = first.get(span.trace_id);
    if (known === undefined || span.start_time_unix_nano < known.start_time_unix_nano) first.set(span.trace_id, span);
    if (span.trace_tags?.["iii.message.id"] !== undefined || STARTS.test(span.name)) turns.add(span.trace_id);
  }
  return [...first.values()]
    .filter((span) => turns.has(span.trace_id))
    .map(({ trace_id, name, start_time_unix_nano }) => ({ trace_id, name, start_ms: start_time_unix_nano / 1e6 }))
    .sort((a, b) => b.start_ms - a.start_ms);
}

/** The message that was posted nearest to a trace's start: posting is what starts it. */
export function traceTitle(row: TraceRow, messages: readonly AgentMessage[]): string {
  let best: { readonly text: string; readonly off: number } | undefined;
  for (const message of messages) {
    if (message.role !== "user") continue;
    const off = Math.abs(message.timestamp - row.start_ms);
    if (best === undefined || off < best.off) best = { text: textOf(message.content), off };
  }
  return best === undefined ? row.name : headline(best.text, 40);
}
