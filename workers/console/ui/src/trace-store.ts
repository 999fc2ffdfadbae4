// The traces of one session: which there are, and the tree of the one that is looked at. Read again while something still runs.
import type * as Observed from "@iii/engine/contract";
import type { Iii } from "@iii/sdk";
import { signal } from "@preact/signals";
import { call } from "./bus.ts";
import { type Advice, advice } from "./model/advice.ts";
import type { TraceSpan } from "./model/trace-tree.ts";

export interface TraceRow {
  readonly trace_id: string;
  readonly name: string;
  readonly start_ms: number;
}

export function openTraces(iii: Iii, session_id: string) {
  const list = signal<readonly TraceRow[] | null>(null);
  const roots = signal<readonly TraceSpan[] | null>(null);
  const problem = signal<Advice | null>(null);

  async function load(): Promise<void> {
    await guard(async () => {
      const { groups } = await call<typeof Observed.tracesGroupBy>(iii, "engine::traces::group_by", {
        attribute: "iii.session.id",
        include_internal: true,
        limit: 1000,
      });
      const ids = groups.find((group) => group.value === session_id)?.trace_ids ?? [];
      list.value = ids.length === 0 ? [] : rowsOf(ids, await spansOf(iii, ids));
    });
  }

  async function show(trace_id: string): Promise<void> {
    await guard(async () => {
      const tree = await call<typeof Observed.tracesTree>(iii, "engine::traces::tree", { trace_id });
      roots.value = tree.roots;
    });
  }

  async function guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      problem.value = null;
    } catch (error) {
      problem.value = advice(error);
    }
  }

  return { list, roots, problem, load, show };
}

async function spansOf(iii: Iii, trace_ids: string[]): Promise<readonly TraceSpan[]> {
  const answer = await call<typeof Observed.tracesList>(iii, "engine::traces::list", {
    trace_ids,
    include_internal: true,
    limit: 1000,
    sort_order: "desc",
  });
  return answer.spans;
}

/** Calls that start a turn. Other traces of a session are look-ups, by this page among others. */
const STARTS = /harness::trigger|run::start|\/harness\/trigger/;

/** One row per trace, newest first: its earliest span names it. Turns only, when there are any. */
function rowsOf(ids: readonly string[], spans: readonly TraceSpan[]): readonly TraceRow[] {
  const first = new Map<string, TraceSpan>();
  for (const span of spans) {
    const known = first.get(span.trace_id);
    if (known === undefined || span.start_time_unix_nano < known.start_time_unix_nano) first.set(span.trace_id, span);
  }
  const rows = ids.map((trace_id) => {
    const span = first.get(trace_id);
    return { trace_id, name: span?.name ?? "trace", start_ms: (span?.start_time_unix_nano ?? 0) / 1e6 };
  });
  rows.sort((a, b) => b.start_ms - a.start_ms);
  const turns = rows.filter((row) => STARTS.test(row.name));
  return turns.length > 0 ? turns : rows;
}
