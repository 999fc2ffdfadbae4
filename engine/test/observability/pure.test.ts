import fc from "fast-check";
import { expect, test } from "vitest";
import { cleanSpan } from "../../src/builtin/observability/clean.ts";
import { type SpanNode, type StoredSpan, tracesGroupBy, tracesList } from "../../src/builtin/observability/contract.ts";
import { readFrame } from "../../src/builtin/observability/otlp.ts";
import { groupSpans, listSpans } from "../../src/builtin/observability/queries.ts";
import { SpanStore } from "../../src/builtin/observability/spans.ts";
import { buildTree } from "../../src/builtin/observability/tree.ts";

function span(span_id: string, parent: string | null, more: Partial<StoredSpan> = {}): StoredSpan {
  return {
    trace_id: "t1",
    span_id,
    parent_span_id: parent,
    name: span_id,
    start_time_unix_nano: 1e6,
    end_time_unix_nano: 2e6,
    status: "ok",
    attributes: [],
    service_name: "w",
    events: [],
    links: [],
    ...more,
  };
}

const flat = (nodes: readonly SpanNode[]): SpanNode[] => nodes.flatMap((node) => [node, ...flat(node.children)]);

test("whatever parents spans name, every span stands in the tree once", () => {
  const id = fc.integer({ min: 0, max: 9 }).map((n) => `s${n}`);
  const spans = fc.uniqueArray(fc.tuple(id, fc.option(id)), { selector: ([own]) => own, minLength: 1 });
  fc.assert(
    fc.property(spans, (pairs) => {
      const tree = buildTree(pairs.map(([own, parent]) => span(own, parent)));
      const real = flat(tree).filter((node) => node.name !== "(not recorded)");
      expect(real.map((node) => node.span_id).sort()).toEqual(pairs.map(([own]) => own).sort());
      const trueRoots = pairs.filter(([, parent]) => parent === null).length;
      expect(tree.length).toBe(Math.max(1, trueRoots));
    }),
  );
});

test("children stand in order of time, and a trigger wrapper around nothing is left out", () => {
  const tree = buildTree([
    span("root", null),
    span("late", "root", { start_time_unix_nano: 9e6 }),
    span("early", "root", { start_time_unix_nano: 3e6 }),
    span("wrapper", "root", { name: "state_triggers" }),
  ]);
  expect(tree[0]?.children.map((child) => child.name)).toEqual(["early", "late"]);
});

test("an end replaces a start and a loss; a start that comes late changes nothing", () => {
  const store = new SpanStore();
  const running = span("a", null, { end_time_unix_nano: 0, pending: true });
  store.put(running, "w1");
  store.close("w1", 5e6);
  expect(store.trace("t1")).toMatchObject([{ status: "error", end_time_unix_nano: 5e6 }]);
  store.put(span("a", null), "w1");
  store.put(running, "w1");
  store.close("w1", 9e6);
  expect(store.trace("t1")).toMatchObject([{ status: "ok", end_time_unix_nano: 2e6 }]);
});

test.each([
  ["whole", JSON.stringify({ type: "api_key", key: "0f1e2d3c4b5a" })],
  ["inside of more", JSON.stringify([{ credential: 1, found: { key: "0f1e2d3c4b5a", type: "api_key" } }])],
  ["cut", '{"type":"api_key","key":"0f1e2d3c4b5a'],
])("a credential that another client captured is not kept: %s", (_title, captured) => {
  const event = {
    name: "iii.invocation.output",
    timestamp_unix_nano: 1,
    attributes: [["iii.payload.json", captured]] as [string, string][],
  };
  const kept = cleanSpan({ ...span("1", null), events: [event] });
  expect(JSON.stringify(kept)).not.toContain("0f1e2d3c4b5a");
  expect(JSON.stringify(kept)).toContain("iii.payload.json");
});

test("the store stays within its bounds; the oldest trace gives way and the loss is counted", () => {
  const gone: string[] = [];
  const store = new SpanStore({ max_spans: 10, max_spans_per_trace: 4, changed: (id, changed) => void (changed ?? gone.push(id)) });
  for (let n = 0; n < 6; n += 1) {
    for (const child of ["a", "b", "c", "d", "e"]) store.put(span(child, null, { trace_id: `t${n}` }), "w");
  }
  expect(store.count).toBeLessThanOrEqual(10);
  expect(gone).toEqual(["t0", "t1", "t2", "t3"]);
  expect(store.dropped).toBe(6 + 16);
});

test("the patter of a live stream is shown in part, with what hangs below it, and never kept for long", () => {
  const store = new SpanStore();
  const lasting: string[] = [];
  const kept = new SpanStore({ changed: (_id, changed) => void (changed && lasting.push(changed.span_id)) });
  for (const target of [store, kept]) {
    target.put(span("step", null), "w");
    for (let n = 0; n < 200; n += 1) {
      target.put(span(`set${n}`, "step", { name: "call stream::set" }), "w");
      target.put(span(`push${n}`, `set${n}`, { name: "stream_triggers" }), "w");
      target.put(span(`run${n}`, `push${n}`, { name: "execute x::y" }), "w");
    }
  }
  expect(store.count).toBe(1 + 60);
  expect(buildTree(store.trace("t1"))).toHaveLength(1);
  expect(flat(buildTree(store.trace("t1"))).some((node) => node.name === "(not recorded)")).toBe(false);
  expect(store.dropped).toBe(0);
  expect(lasting).toEqual(["step"]);
});

const list = (input: object) => tracesList.input.parse(input);
const SPANS = [
  span("r1", null, { name: "Alpha", attributes: [["iii.session.id", "s1"]] }),
  span("c1", "r1", { name: "beta", status: "error", end_time_unix_nano: 8e6, service_name: "other" }),
  span("e1", "r1", { name: "call engine::workers::list", attributes: [["iii.function.id", "engine::workers::list"]] }),
  span("r2", null, { trace_id: "t2", start_time_unix_nano: 5e6, end_time_unix_nano: 6e6, attributes: [["iii.session.id", "s2"]] }),
];

test.each([
  ["roots only", {}, ["r1", "r2"]],
  ["all", { search_all_spans: true }, ["r1", "c1", "r2"]],
  ["internal too", { search_all_spans: true, include_internal: true }, ["r1", "c1", "e1", "r2"]],
  ["by name, any case", { name: "ALPHA" }, ["r1"]],
  ["by status", { status: "err", search_all_spans: true }, ["c1"]],
  ["a match whose parent does not match is a root", { service_name: "other" }, ["c1"]],
  ["by duration", { min_duration_ms: 3, search_all_spans: true }, ["c1"]],
  ["by time", { start_time: 4 }, ["r2"]],
  ["by attribute", { attributes: [["iii.session.id", "s2"]] }, ["r2"]],
  ["without an attribute", { exclude_attributes: [["iii.session.id", "s2"]] }, ["r1"]],
  ["by trace", { trace_id: "t2" }, ["r2"]],
  ["newest first, one page", { sort_order: "desc", limit: 1 }, ["r2"]],
])("list: %s", (_title, input, expected) => {
  expect(listSpans(SPANS, list(input)).spans.map((found) => found.span_id)).toEqual(expected);
});

test("groups come newest first, and spans without the attribute are skipped", () => {
  const groups = groupSpans(SPANS, tracesGroupBy.input.parse({ attribute: "iii.session.id" }));
  expect(groups.map((group) => [group.value, group.span_count, group.trace_ids])).toEqual([
    ["s2", 1, ["t2"]],
    ["s1", 1, ["t1"]],
  ]);
  expect(groupSpans(SPANS, tracesGroupBy.input.parse({ attribute: "iii.session.id", since_ms: 3 }))).toHaveLength(1);
});

const frame = (text: string) => new TextEncoder().encode(text);

test.each([
  ["unknown letters", "NOPE{}", undefined],
  ["no JSON", "OTLP{", undefined],
  ["metrics, which are not kept", "MTRC{}", { spans: [], logs: [] }],
  [
    "entries of the wrong shape",
    'OTLP{"resourceSpans":[1,{"scopeSpans":{"x":1}},{"scopeSpans":[{"spans":[{"traceId":"00","spanId":"1"}]}]}]}',
    { spans: [], logs: [] },
  ],
])("a frame with %s is no accident", (_title, text, expected) => {
  expect(readFrame(frame(text))).toEqual(expected);
});

test("numbers as text, zero parents and status names are read as OTLP means them", () => {
  const record = {
    traceId: "AB",
    spanId: "CD",
    parentSpanId: "0000",
    name: "n",
    startTimeUnixNano: "1700000000000000000",
    endTimeUnixNano: 0,
    status: { code: "STATUS_CODE_ERROR", message: "m" },
    attributes: [
      { key: "n", value: { intValue: "7" } },
      { key: "l", value: { arrayValue: { values: [{ boolValue: true }] } } },
    ],
  };
  const body = {
    resourceSpans: [
      { resource: { attributes: [{ key: "service.name", value: { stringValue: "svc" } }] }, scopeSpans: [{ spans: [record] }] },
    ],
  };
  expect(readFrame(frame(`OTLP${JSON.stringify(body)}`))?.spans).toMatchObject([
    {
      trace_id: "ab",
      span_id: "cd",
      parent_span_id: null,
      start_time_unix_nano: 1.7e18,
      pending: true,
      status: "error",
      status_description: "m",
      service_name: "svc",
      attributes: [
        ["n", "7"],
        ["l", "[true]"],
      ],
    },
  ]);
});

test("any bytes are read without an exception", () => {
  fc.assert(fc.property(fc.json(), fc.constantFrom("OTLP", "LOGS"), (json, kind) => void readFrame(frame(kind + json))));
});
