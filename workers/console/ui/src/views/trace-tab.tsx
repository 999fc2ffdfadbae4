// The traces of a session, one per turn, and the one that is looked at as a tree with bars.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { isOver } from "../model/calls.ts";
import { chatPath } from "../model/route.ts";
import { type TraceRow, traceTitle } from "../model/trace-list.ts";
import { timeline, traceIdOf } from "../model/trace-tree.ts";
import type { View } from "../model/transcript.ts";
import { Link } from "../router.tsx";
import type { SessionStore } from "../session-store.ts";
import { openTraces } from "../trace-store.ts";
import { useApp } from "./context.ts";
import { Problem } from "./problem.tsx";
import { Waterfall } from "./waterfall.tsx";

const AGAIN_MS = 1500;

export function TraceTab({ store, trace }: { store: SessionStore; trace: string | undefined }) {
  const { iii, now } = useApp();
  const traces = useMemo(() => openTraces(iii, store.session_id), [iii, store.session_id]);
  const view = store.view.value;
  const chosen = trace ?? traceIdOf(view.turn?.traceparent) ?? traces.list.value?.[0]?.trace_id;
  const running = !isOver(view.turn);
  const tick = useSignal(0);

  useEffect(() => {
    void traces.load();
  }, [traces, view.turn?.turn_id, view.turn?.state]);
  useEffect(() => {
    if (chosen !== undefined) void traces.show(chosen);
  }, [traces, chosen, view.turn?.state, tick.value]);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => {
      tick.value += 1;
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [running, tick]);

  const roots = traces.roots.value;
  const pending = roots?.some((root) => root.pending === true) ?? false;
  const laid = useMemo(() => (roots === null ? null : timeline(roots, now.value)), [roots, pending ? now.value : 0]);
  return (
    <div class="trace">
      {traces.problem.value !== null && <Problem advice={traces.problem.value} retry={() => void traces.load()} />}
      <TraceList rows={traces.list.value} chosen={chosen} view={view} session_id={store.session_id} />
      {laid === null || laid.rows.length === 0 ? (
        <p class="empty">{emptyText(chosen, roots !== null && !running)}</p>
      ) : (
        <Waterfall key={chosen} timeline={laid} trace_id={chosen ?? ""} />
      )}
    </div>
  );
}

function emptyText(chosen: string | undefined, answered: boolean): string {
  if (chosen === undefined) return "No trace of this session yet. Send a message first.";
  return answered ? `There is no trace ${chosen}: it was never recorded, or its place was needed for newer ones.` : "Reading the trace…";
}

function TraceList(props: { rows: readonly TraceRow[] | null; chosen: string | undefined; view: View; session_id: string }) {
  if (props.rows === null || props.rows.length === 0) return null;
  const messages = props.view.entries.map((entry) => entry.message);
  return (
    <nav class="trace-list" aria-label="Traces of this session">
      {props.rows.map((row) => (
        <Link
          key={row.trace_id}
          href={`${chatPath(props.session_id)}/trace/${row.trace_id}`}
          class="trace-link"
          aria-current={row.trace_id === props.chosen ? "page" : undefined}
        >
          <span class="trace-title">{traceTitle(row, messages)}</span>
          <span class="muted num">{new Date(row.start_ms).toLocaleTimeString([], { hour12: false })}</span>
        </Link>
      ))}
    </nav>
  );
}
