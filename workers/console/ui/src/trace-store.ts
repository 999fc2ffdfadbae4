// The traces of one session: which there are, and the tree of the one that is looked at. Read again while something still runs.
import type * as Observed from "@iii/engine/contract";
import type { Iii } from "@iii/sdk";
import { signal } from "@preact/signals";
import { call } from "./bus.ts";
import { type Advice, advice } from "./model/advice.ts";
import { type ListedSpan, type TraceRow, traceRows } from "./model/trace-list.ts";
import type { TraceSpan } from "./model/trace-tree.ts";

export function openTraces(iii: Iii, session_id: string) {
  const list = signal<readonly TraceRow[] | null>(null);
  const roots = signal<readonly TraceSpan[] | null>(null);
  const problem = signal<Advice | null>(null);
  let shown: string | undefined;

  async function load(): Promise<void> {
    await guard(async () => {
      const { groups } = await call<typeof Observed.tracesGroupBy>(iii, "engine::traces::group_by", {
        attribute: "iii.session.id",
        include_internal: true,
        limit: 1000,
      });
      const ids = groups.find((group) => group.value === session_id)?.trace_ids ?? [];
      list.value = ids.length === 0 ? [] : traceRows(await spansOf(iii, ids));
    });
  }

  async function show(trace_id: string): Promise<void> {
    if (shown !== trace_id) roots.value = null;
    shown = trace_id;
    await guard(async () => {
      const tree = await call<typeof Observed.tracesTree>(iii, "engine::traces::tree", { trace_id });
      if (shown === trace_id) roots.value = tree.roots;
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

async function spansOf(iii: Iii, trace_ids: string[]): Promise<readonly ListedSpan[]> {
  const answer = await call<typeof Observed.tracesList>(iii, "engine::traces::list", {
    trace_ids,
    include_internal: true,
    limit: 1000,
    sort_order: "desc",
  });
  return answer.spans;
}
