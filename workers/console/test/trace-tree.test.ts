import { expect, test } from "vitest";
import { shownRows, type TraceSpan, timeline, traceIdOf } from "../ui/src/model/trace-tree.ts";

const span = (name: string, from: number, to: number, children: TraceSpan[] = [], more: Partial<TraceSpan> = {}): TraceSpan => ({
  trace_id: "t",
  span_id: `${name}@${from}`,
  name,
  start_time_unix_nano: (1_000_000 + from) * 1e6,
  end_time_unix_nano: to === 0 ? 0 : (1_000_000 + to) * 1e6,
  status: "ok",
  attributes: [],
  service_name: "w",
  children,
  ...more,
});

const TURN = [
  span("execute harness::trigger", 0, 40, [
    span("execute turn::step", 50, 215, [span("execute provider::demo::stream", 60, 200, [span("state::transact", 190, 195)])]),
    span("execute turn::step", 9_010, 9_500, [
      span("execute turn::on_approval", 9_011, 9_012),
      span("execute shell::fs::ls", 9_020, 9_100),
    ]),
  ]),
];

test("rows come depth first, children by start, placed from the trace's beginning", () => {
  const { rows, total_ms } = timeline(TURN, 0);
  expect(rows.map((row) => [row.span.name, row.depth, row.start_ms])).toEqual([
    ["execute harness::trigger", 0, 0],
    ["execute turn::step", 1, 50],
    ["execute provider::demo::stream", 2, 60],
    ["state::transact", 3, 190],
    ["execute turn::step", 1, 9_010],
    ["execute turn::on_approval", 2, 9_011],
    ["execute shell::fs::ls", 2, 9_020],
  ]);
  expect(total_ms).toBe(9_500);
});

test("a stretch in which nothing ran is waiting, and a decision that ends it is named", () => {
  expect(timeline(TURN, 0).gaps).toEqual([{ start_ms: 215, duration_ms: 8_795, approval: true }]);
});

test("a span that still runs ends now; a lost one is marked lost and not an error", () => {
  const { rows, lost, errors } = timeline(
    [
      span("a", 0, 0, [], { pending: true }),
      span("b", 5, 9, [], { status: "error", attributes: [["iii.span.lost", "true"]] }),
      span("c", 6, 9, [], { status: "error" }),
    ],
    1_000_030,
  );
  expect(rows.map((row) => [row.state, row.duration_ms])).toEqual([
    ["running", 30],
    ["lost", 4],
    ["error", 3],
  ]);
  expect([lost, errors]).toEqual([1, 1]);
});

test("quiet storage subtrees are counted and left out unless asked for", () => {
  const { rows } = timeline(
    [
      span("execute turn::step", 0, 90, [
        span("call state::transact", 1, 9, [span("stream_triggers", 2, 8, [span("execute harness::fanout::agent_event_handler", 3, 7)])]),
        span("call state::set", 10, 19, [span("state_triggers", 11, 18, [span("execute turn::on_approval", 12, 17)])]),
        span("call state::get", 20, 29, [], { status: "error" }),
      ]),
    ],
    0,
  );
  const { rows: shown, quiet } = shownRows(rows, new Set(), false);
  expect(shown.map((row) => row.span.name)).toEqual([
    "execute turn::step",
    "call state::set",
    "state_triggers",
    "execute turn::on_approval",
    "call state::get",
  ]);
  expect(quiet).toBe(3);
  expect(shownRows(rows, new Set(), true).rows).toHaveLength(8);
});

test("what is below a collapsed row is gone", () => {
  const { rows } = timeline(TURN, 0);
  expect(shownRows(rows, new Set(["execute harness::trigger@0"]), true).rows).toHaveLength(1);
});

test("a chain as deep as a trace may be is laid out", () => {
  let deep = span("leaf", 0, 1);
  for (let i = 0; i < 20_000; i += 1) deep = span("s", 0, 1, [deep]);
  expect(timeline([deep], 0).rows).toHaveLength(20_001);
});

test("an empty trace has no rows", () => {
  expect(timeline([], 5)).toMatchObject({ rows: [], gaps: [] });
});

test("the trace id is read from a traceparent, or there is none", () => {
  expect(traceIdOf(`00-${"a".repeat(32)}-${"b".repeat(16)}-01`)).toBe("a".repeat(32));
  expect(traceIdOf("rubbish")).toBeUndefined();
  expect(traceIdOf(undefined)).toBeUndefined();
});
