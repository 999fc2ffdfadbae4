// A trace as an indented tree with bars. Waiting is hatched, so that it does not read as work.
import { useSignal } from "@preact/signals";
import { duration, headline } from "../model/text.ts";
import { attributesOf, type Gap, type Row, shownRows, type Timeline } from "../model/trace-tree.ts";
import { CopyButton, Plain } from "./plain.tsx";

const STATE = { ok: "", error: "error", lost: "lost", running: "running" } as const;

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** What went wrong stands in the row itself, as far as its span says it. */
function chip({ state, span }: Row): string {
  return state === "error" ? headline(span.status_description ?? STATE.error, 80) : STATE[state];
}

export function Waterfall({ timeline, trace_id }: { timeline: Timeline; trace_id: string }) {
  const collapsed = useSignal<ReadonlySet<string>>(new Set());
  const all = useSignal(false);
  const open = useSignal<string | null>(null);
  const { rows, quiet } = shownRows(timeline.rows, collapsed.value, all.value);
  const chosen = timeline.rows.find((row) => row.span.span_id === open.value);
  const parents = new Set(rows.map((row) => row.parent));
  const fold = (id: string) => {
    const next = new Set(collapsed.value);
    if (!next.delete(id)) next.add(id);
    collapsed.value = next;
  };
  return (
    <div class="waterfall">
      <header class="trace-head">
        <span class="mono muted">{trace_id}</span>
        <CopyButton text={trace_id} label="Copy the trace id" />
        <span class="num">{duration(timeline.total_ms)}</span>
        <span class="muted">
          {timeline.rows.length} spans · {timeline.services.length} workers
        </span>
        {timeline.errors > 0 && (
          <span class="chip" data-tone="bad">
            {counted(timeline.errors, "error")}
          </span>
        )}
        {timeline.lost > 0 && <span class="chip" data-tone="warn">{`${timeline.lost} lost`}</span>}
        <span class="spacer" />
        <label class="check">
          <input
            type="checkbox"
            checked={all.value}
            onChange={() => {
              all.value = !all.value;
            }}
          />
          show {counted(quiet, "internal step")}
        </label>
      </header>
      <Axis total={timeline.total_ms} gaps={timeline.gaps} />
      <ol class="rows" aria-label="Spans">
        {rows.map((row) => (
          <li key={row.span.span_id} class="row" data-state={row.state} data-open={row.span.span_id === open.value}>
            <span class="row-name" style={{ paddingInlineStart: `${Math.min(row.depth, 24) * 12}px` }}>
              <Fold row={row} open={parents.has(row.span.span_id)} collapsed={collapsed.value.has(row.span.span_id)} fold={fold} />
              <button
                type="button"
                class="row-button"
                aria-expanded={row.span.span_id === open.value}
                title={`${row.span.name} · ${row.span.service_name}`}
                onClick={() => {
                  open.value = open.value === row.span.span_id ? null : row.span.span_id;
                }}
              >
                <span class="mono">{row.span.name}</span> <span class="muted">{row.span.service_name}</span>
                {chip(row) !== "" && <span class="chip row-chip">{chip(row)}</span>}
              </button>
            </span>
            <Bar row={row} total={timeline.total_ms} gaps={timeline.gaps} />
          </li>
        ))}
      </ol>
      {chosen !== undefined && <Sheet row={chosen} />}
    </div>
  );
}

function Fold({ row, open, collapsed, fold }: { row: Row; open: boolean; collapsed: boolean; fold: (id: string) => void }) {
  if (!open && !collapsed) return <span class="fold" />;
  return (
    <button
      type="button"
      class="fold"
      aria-expanded={!collapsed}
      aria-label={`${collapsed ? "Show" : "Hide"} what is below ${row.span.name}`}
      onClick={() => fold(row.span.span_id)}
    >
      {collapsed ? "▸" : "▾"}
    </button>
  );
}

const percent = (ms: number, total: number) => `${((ms / total) * 100).toFixed(3)}%`;

function Bar({ row, total, gaps }: { row: Row; total: number; gaps: readonly Gap[] }) {
  const left = row.start_ms / total;
  return (
    <span class="track">
      <Hatch gaps={gaps} total={total} />
      <span
        class="bar"
        data-kind={row.kind}
        data-state={row.state}
        style={{ insetInlineStart: percent(row.start_ms, total), width: percent(row.duration_ms, total) }}
      />
      <span
        class="bar-label num"
        style={
          left > 0.75
            ? { insetInlineEnd: percent(total - row.start_ms, total) }
            : { insetInlineStart: percent(row.start_ms + row.duration_ms, total) }
        }
        data-side={left > 0.75 ? "before" : left + row.duration_ms / total > 0.88 ? "inside" : "after"}
      >
        {duration(row.duration_ms)}
      </span>
    </span>
  );
}

function Hatch({ gaps, total }: { gaps: readonly Gap[]; total: number }) {
  return (
    <>
      {gaps.map((gap) => (
        <span
          key={gap.start_ms}
          class="gap"
          style={{ insetInlineStart: percent(gap.start_ms, total), width: percent(gap.duration_ms, total) }}
        />
      ))}
    </>
  );
}

function Axis({ total, gaps }: { total: number; gaps: readonly Gap[] }) {
  return (
    <div class="axis" aria-hidden="true" data-gaps={gaps.length > 0}>
      <span class="row-name muted">span · worker</span>
      <span class="track">
        {[0, 0.25, 0.5, 0.75, 1].map((at) => (
          <span key={at} class="tick num" style={{ insetInlineStart: `${at * 100}%` }} data-last={at === 1}>
            {duration(total * at)}
          </span>
        ))}
        {gaps.map((gap) => (
          <span
            key={gap.start_ms}
            class="gap-label"
            data-narrow={gap.duration_ms / total < 0.12}
            style={{ insetInlineStart: percent(gap.start_ms, total), width: percent(gap.duration_ms, total) }}
          >
            {gap.approval ? "waited for a decision" : "waited"} {duration(gap.duration_ms)}
          </span>
        ))}
      </span>
    </div>
  );
}

function Sheet({ row }: { row: Row }) {
  const { span } = row;
  return (
    <section class="sheet" aria-label={`Span ${span.name}`}>
      <h2 class="mono">{span.name}</h2>
      <p class="muted">
        {span.service_name} · {duration(row.duration_ms)} · {row.state}
        {span.status_description !== undefined && ` · ${span.status_description}`}
      </p>
      <table>
        <tbody>
          <tr>
            <th scope="row">span id</th>
            <td class="mono">{span.span_id}</td>
          </tr>
          {Object.entries(attributesOf(span)).map(([key, value]) => (
            <tr key={key}>
              <th scope="row">{key}</th>
              <td class="mono">
                <Plain text={value} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
