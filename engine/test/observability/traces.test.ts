import { StreamEvent, stateSet, stateTransact, streamSet, tracesClear, tracesGroupBy, tracesList, tracesTree } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { defineFunction, defineWorker } from "@iii/sdk";
import { loadSurroundings } from "@iii/sdk/trace";
import { SpanStatusCode, trace } from "@opentelemetry/api";
import { expect, test } from "vitest";
import { z } from "zod";
import type { SpanNode } from "../../src/builtin/observability/contract.ts";
import { createMemoryStore } from "../../src/storage/memory.ts";

const Input = z.object({ session_id: z.string().optional(), message_id: z.string().optional(), text: z.string().default("") });
const outer = defineFunction({ id: "outer::run", about: "Outer.", input: Input, output: z.object({ text: z.string() }) });
const inner = defineFunction({ id: "inner::run", about: "Inner.", input: Input, output: z.object({ text: z.string() }) });
const step = defineFunction({ id: "outer::step", about: "Step.", input: Input, output: z.null() });

const outerWorker = defineWorker({
  name: "outer",
  config: z.object({}),
  register(on, { iii }) {
    on(outer, async ({ text }) => {
      await Promise.resolve();
      await iii.trigger(stateSet, { scope: "notes", key: "k", value: 1 });
      return iii.trigger(inner, { text });
    });
    on(step, async () => {
      await iii.trigger(inner, {});
      return null;
    });
  },
});
const innerWorker = defineWorker({
  name: "inner",
  config: z.object({}),
  register: (on) => on(inner, ({ text }) => ({ text: text.toUpperCase() })),
});

function names(node: SpanNode): unknown {
  return { [`${node.name} @${node.service_name}`]: node.children.map(names) };
}

test("a call through two workers and a built-in is one tree, found by its session", async () => {
  await using bus = await testBus([outerWorker, innerWorker], { trace: true });
  await bus.call(outer, { session_id: "s1", message_id: "m1", text: "a" });
  await bus.settle();
  const { groups } = await bus.call(tracesGroupBy, { attribute: "iii.session.id" });
  expect(groups).toMatchObject([{ value: "s1", error_count: 0 }]);
  const { roots } = await bus.call(tracesTree, { trace_id: groups[0]?.trace_ids[0] ?? "" });
  expect(roots.map(names)).toEqual([
    { "execute outer::run @outer": [{ "call state::set @iii-engine": [] }, { "execute inner::run @inner": [] }] },
  ]);
  const [root] = roots;
  expect(root?.children.every((child) => child.attributes.some(([key, value]) => key === "iii.session.id" && value === "s1"))).toBe(true);
  expect(root?.events.map((event) => event.name)).toEqual(["iii.invocation.input", "iii.invocation.output"]);
});

test("work that goes through a queue stays in the tree of what enqueued it", async () => {
  await using bus = await testBus([outerWorker, innerWorker], { trace: true });
  const traceparent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
  const enqueue = [{ queue: "turn-step", function_id: "outer::step", data: { session_id: "s2", message_id: "m1" } }];
  await bus.call(stateTransact, { enqueue }, { traceparent });
  await bus.clock.advance(100);
  const { roots } = await bus.call(tracesTree, { trace_id: "0123456789abcdef0123456789abcdef" });
  expect(roots).toHaveLength(1);
  const all = JSON.stringify(roots.map(names));
  expect(all).toContain("execute outer::step");
  expect(all).toContain("execute inner::run");
  expect(roots[0]?.attributes).toContainEqual(["iii.span.lost", "true"]);
});

test("work that is put under a trace of its own links to what woke it", async () => {
  await using bus = await testBus([outerWorker, innerWorker], { trace: true });
  const own = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
  const waker = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01";
  const enqueue = [{ queue: "turn-step", function_id: "outer::step", data: { session_id: "s2", message_id: "m1" }, traceparent: own }];
  await bus.call(stateTransact, { enqueue }, { traceparent: waker });
  await bus.clock.advance(100);
  const { roots } = await bus.call(tracesTree, { trace_id: "0123456789abcdef0123456789abcdef" });
  const delivery = roots[0]?.children.find((node) => node.name === "fn_queue turn-step");
  expect(delivery?.links).toMatchObject([{ trace_id: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }]);
});

test("a span whose process dies is closed as lost; the tree survives the engine too", async () => {
  const stuck = defineFunction({ id: "stuck::run", about: "Never answers.", input: Input, output: z.null() });
  const worker = defineWorker({
    name: "stuck",
    config: z.object({}),
    register: (on) => on(stuck, () => new Promise<null>(() => undefined)),
  });
  await using bus = await testBus([worker], { trace: true });
  void bus.call(stuck, { session_id: "s3", message_id: "m1" }).catch(() => undefined);
  await bus.settle();
  await bus.clock.advance(300);
  await bus.crash();
  const { spans } = await bus.call(tracesList, { attributes: [["iii.session.id", "s3"]] });
  expect(spans).toMatchObject([{ name: "execute stuck::run", status: "error", trace_tags: { "iii.session.id": "s3" } }]);
  expect(spans[0]?.attributes).toContainEqual(["iii.span.lost", "true"]);
});

test("no secret reaches a span, a name, an event or a log", async () => {
  const SECRET = "sk-live-0123456789abcdef";
  const leaky = defineFunction({
    id: "leaky::run",
    about: "Leaks.",
    input: z.object({ token: z.string(), text: z.string() }),
    output: z.null(),
  });
  const worker = defineWorker({
    name: "leaky",
    config: z.object({}),
    register(on, { iii }) {
      on(leaky, async ({ text }) => {
        await iii.trigger("engine::log::error", { message: text, data: { token: SECRET, nested: [text] } });
        throw new Error(text);
      });
    },
  });
  await using bus = await testBus([worker], { trace: true });
  const text = `key ${SECRET}`;
  await expect(bus.call(leaky, { token: SECRET, text }, { baggage: { tenant: SECRET } })).rejects.toThrow();
  await bus.settle();
  const spans = await bus.call(tracesList, { search_all_spans: true, include_internal: true });
  const logs = await bus.call("engine::logs::list", {});
  expect(spans.total).toBeGreaterThan(0);
  expect(JSON.stringify([spans, logs])).not.toContain(SECRET);
});

test("a live delta leaves no span, nor does what hears it; a stored item does; a refused one does", async () => {
  const writer = defineFunction({ id: "writer::run", about: "Writes.", input: Input, output: z.null() });
  const hear = defineFunction({ id: "reader::hear", about: "Hears.", input: StreamEvent, output: z.null() });
  const heard: (string | undefined)[] = [];
  const item = { stream_name: "live", group_id: "g" };
  const worker = defineWorker({
    name: "writer",
    config: z.object({}),
    register(on, { iii }) {
      on(writer, async () => {
        await iii.trigger(streamSet, { ...item, item_id: "d/1", data: "x", ephemeral: true });
        await iii.trigger(streamSet, { ...item, item_id: "kept", data: "x" });
        await iii.trigger("stream::set", { ...item, item_id: 7, ephemeral: true }).catch(() => undefined);
        return null;
      });
      on(hear, async (_event, call) => {
        await iii.trigger("engine::functions::info", { function_id: writer.id });
        heard.push(call.traceparent?.slice(-2));
        return null;
      });
      on.trigger({ type: "stream", function_id: hear.id, config: { stream_name: "live" } });
    },
  });
  await using bus = await testBus([worker], { trace: true });
  await bus.call(writer, { session_id: "s4", message_id: "m1" });
  await bus.settle();
  expect(heard).toEqual(["00", "01"]);
  const { groups } = await bus.call(tracesGroupBy, { attribute: "iii.session.id" });
  const { roots } = await bus.call(tracesTree, { trace_id: groups[0]?.trace_ids[0] ?? "" });
  expect(roots.map(names)).toEqual([
    {
      "execute writer::run @writer": [
        {
          "call stream::set @iii-engine": [
            { "stream_triggers @iii-engine": [{ "execute reader::hear @writer": [{ "call engine::functions::info @iii-engine": [] }] }] },
          ],
        },
        { "call stream::set @iii-engine": [] },
      ],
    },
  ]);
  expect(roots[0]?.children[1]?.status).toBe("error");
});

test("a session's spans outlive the engine, in one row per flush; what it left open is lost", async () => {
  await using bus = await testBus([outerWorker, innerWorker], { trace: true });
  const kept = async () => (await bus.store.load()).filter((row) => row.space === "trace");
  await bus.call(outer, { session_id: "s1", message_id: "m1", text: "a" });
  await bus.clock.advance(500);
  const [row, ...more] = await kept();
  expect(more).toEqual([]);
  const spans = JSON.parse(row?.value ?? "") as { name: string; trace_id: string; pending?: true }[];
  expect(spans.map((span) => span.name).sort()).toEqual(["call state::set", "execute inner::run", "execute outer::run"]);
  expect(spans.some((span) => span.pending === true)).toBe(false);
  expect(row?.key).toBe(`${spans[0]?.trace_id}/${"1".padStart(16, "0")}`);
  await bus.crash();
  await bus.clock.advance(500);
  // What stands there as it was is not written again.
  expect(await kept()).toEqual([row]);
  const { roots } = await bus.call(tracesTree, { trace_id: spans[0]?.trace_id ?? "" });
  expect(roots.map(names)).toEqual([
    { "execute outer::run @outer": [{ "call state::set @iii-engine": [] }, { "execute inner::run @inner": [] }] },
  ]);
  await bus.call(tracesClear, {});
  await bus.clock.advance(500);
  expect(await kept()).toEqual([]);
});

test("later rows count; spans that were open become lost and are kept as such; an unreadable row costs nothing but itself", async () => {
  const trace_id = "0123456789abcdef0123456789abcdef";
  const span = (span_id: string, name: string, more: object) => ({
    ...{ trace_id, span_id, parent_span_id: null, name, start_time_unix_nano: 1, end_time_unix_nano: 2, status: "ok" },
    ...{ attributes: [["iii.session.id", "s"]], service_name: "x", events: [], links: [], ...more },
  });
  const open = { end_time_unix_nano: 0, status: "unset", pending: true };
  const store = createMemoryStore();
  const put = (key: string, value: string) => ({ space: "trace", key: `${trace_id}/${key}`, value });
  const under = { parent_span_id: "a" };
  await store.commit([
    put("0000000000000001", JSON.stringify([span("a", "root", open), span("b", "child", { ...open, ...under })])),
    put("0000000000000002", JSON.stringify([span("a", "root", {})])),
    put("0000000000000003", "{"),
  ]);
  await using bus = await testBus([], { trace: true, store: store.reopen() });
  const { roots } = await bus.call(tracesTree, { trace_id });
  expect(roots).toMatchObject([{ name: "root", status: "ok", children: [{ name: "child", status: "error" }] }]);
  await bus.clock.advance(500);
  const last = (await bus.store.load()).filter((row) => row.space === "trace").at(-1);
  expect(last?.key).toBe(`${trace_id}/0000000000000004`);
  expect(JSON.parse(last?.value ?? "")).toMatchObject([
    { span_id: "b", status: "error", attributes: [expect.anything(), ["iii.span.lost", "true"]] },
  ]);
});

test("what a worker writes against the OpenTelemetry API is recorded without an SDK: nested, with its parents and its error", async () => {
  const tracer = trace.getTracer("test");
  const leaf = defineFunction({ id: "leaf::run", about: "Answers.", input: z.object({}), output: z.null() });
  const writer = defineFunction({ id: "api::run", about: "Writes spans.", input: Input, output: z.null() });
  const worker = defineWorker({
    name: "api",
    config: z.object({}),
    register(on, { iii }) {
      on(leaf, async () => {
        // A call is its own place: what its caller has made active is not active here.
        tracer.startSpan("in the leaf").end();
        return null;
      });
      on(writer, () =>
        tracer.startActiveSpan("work", async (span) => {
          tracer.startSpan("detail", { attributes: { rows: 3 } }).end();
          await iii.trigger(leaf, {});
          span.recordException(new Error("no luck"));
          span.setStatus({ code: SpanStatusCode.ERROR, message: "no luck" });
          span.end();
          return null;
        }),
      );
    },
  });
  await using bus = await testBus([worker], { trace: true });
  await bus.clock.advance(1_000);
  await loadSurroundings();
  tracer.startSpan("outside of any call").end();
  await bus.call(writer, { session_id: "s9", message_id: "m1" });
  await bus.settle();
  const { groups } = await bus.call(tracesGroupBy, { attribute: "iii.session.id" });
  const { roots } = await bus.call(tracesTree, { trace_id: groups[0]?.trace_ids[0] ?? "" });
  expect(roots.map(names)).toEqual([
    { "execute api::run @api": [{ "work @api": [{ "detail @api": [] }, { "execute leaf::run @api": [{ "in the leaf @api": [] }] }] }] },
  ]);
  expect(roots[0]?.children[0]).toMatchObject({ status: "error", events: [{ name: "exception" }] });
  expect((await bus.call(tracesList, { name: "outside" })).total).toBe(0);
});
