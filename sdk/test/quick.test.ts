// The quick ways beside the plain ones: heads written by hand, and frames read by one expression.
import { CallHead, encodeFrame, headText, quickEnvelope, ResultHead, readEnvelope } from "@iii/sdk/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What a reader makes of a frame: what it reads, or that it refuses. */
function verdict(read: () => { head: unknown; payload: Uint8Array | undefined } | undefined) {
  try {
    const found = read();
    return found === undefined ? undefined : { head: found.head, payload: found.payload && Buffer.from(found.payload).toString("latin1") };
  } catch (thrown) {
    return (thrown as { code?: unknown }).code;
  }
}

const text = fc.oneof(
  { weight: 10, arbitrary: fc.constantFrom("a::b", "id-1", "", "00-0123-01", "a=b,c=d") },
  { weight: 1, arbitrary: fc.constantFrom('q"', "b\\", "é", "\u2028", "\ud800", "\u0000") },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
);
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: arbitrary });
const callFields = fc.record({
  invocation_id: some(text),
  function_id: text,
  traceparent: some(text),
  baggage: some(text),
  action: rarely(fc.constantFrom({ type: "void" as const }, { type: "enqueue" as const, queue: "q", delay_ms: 5 })),
  metadata: rarely(fc.jsonValue()),
  timeout_ms: some(fc.oneof(fc.nat(), fc.nat(), fc.constantFrom(0, 1.5, -1, 1e21, Number.NaN, Number.POSITIVE_INFINITY))),
  parent: some(text),
  origin: some(fc.constant("agent" as const)),
  session_id: some(text),
});
const context = fc.record(
  {
    caller: text,
    origin: fc.constantFrom("agent" as const, "worker" as const),
    deadline_ms: fc.option(fc.nat()),
    remaining_ms: fc.option(fc.nat()),
    depth: fc.nat(9),
    principal: fc.record({ kind: fc.constantFrom("operator" as const, "none" as const), name: text }),
    session_id: text,
  },
  { requiredKeys: ["caller", "origin", "deadline_ms", "depth"] },
);
const resultFields = fc.record({
  invocation_id: text,
  function_id: some(text),
  error: rarely(fc.oneof(fc.constant({ code: "x", message: "m" }), fc.jsonValue())),
  traceparent: some(text),
  baggage: some(text),
});

test("a head written by hand says what JSON.stringify says", () => {
  const call = fc.tuple(callFields, some(context)).map(([fields, known]) => new CallHead({ ...fields, context: known }));
  const result = resultFields.map((fields) => new ResultHead(fields));
  fc.assert(
    fc.property(fc.oneof(call, result), (head) => {
      expect(JSON.parse(headText(head))).toEqual(JSON.parse(JSON.stringify(head)));
    }),
    { numRuns: 1_000 },
  );
});

test("what JSON leaves out of a head is left out by hand too", () => {
  const odd = { function_id: 5, invocation_id: null, metadata: () => 1, timeout_ms: "5", parent: Symbol("p") } as never;
  expect(JSON.parse(headText(new CallHead(odd)))).toEqual(JSON.parse(JSON.stringify(new CallHead(odd))));
});

const own = fc.tuple(
  fc.oneof(
    callFields.map((fields) => ({ head: headText(new CallHead(fields)), key: "data" as const })),
    resultFields.map((fields) => ({ head: headText(new ResultHead(fields)), key: "result" as const })),
  ),
  fc.oneof(fc.json(), fc.constantFrom("01", "tru", "[}", '{"a":1', '"x', "", " 1", "1 ", '{"a":1},"function_id":"b"', '1,"data":2')),
);

test("the quick reader reads a frame as the full scan does, or declines it: whatever our client writes, and whatever is done to it", () => {
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    cut: fc.nat(3),
    put: fc.oneof(
      fc.constantFrom("", " ", "\n", '"', "\\", ",", "}", "{", '"data":1,', '"function_id":"b",', '"type":"x",', "é", "\u0000", "0", "-"),
      fc.string({ maxLength: 3 }),
    ),
  });
  let read = 0;
  const check = (
    [{ head, key }, payload]: [{ head: string; key: "data" | "result" }, string],
    changes: { at: number; cut: number; put: string }[],
  ) => {
    let frame = `${head.slice(0, -1)},"${key}":${payload}}`;
    for (const { at, cut, put } of changes) {
      const from = Math.floor(at * frame.length);
      frame = frame.slice(0, from) + put + frame.slice(from + cut);
    }
    const quick = verdict(() => quickEnvelope(bytes(frame)));
    if (quick === undefined) return;
    read += 1;
    expect(quick).toEqual(verdict(() => readEnvelope(bytes(frame))));
  };
  fc.assert(fc.property(own, fc.array(change, { maxLength: 2 }), check), { numRuns: 5_000 });
  expect(read).toBeGreaterThan(500);
});

test("a key that stands twice is the full scan's, which refuses it", () => {
  const call = '{"type":"invokefunction","invocation_id":"i","function_id":"a","data":{}}';
  expect(quickEnvelope(bytes(call))).toBeDefined();
  for (const twice of [
    call.replace('"data"', '"function_id":"b","data"'),
    call.replace('"function_id"', '"invocation_id":"j","function_id"'),
    call.replace('"data":{}', '"data":{},"function_id":"b"'),
    call.replace('"data":{}', '"data":{},"data":{}'),
    call.replace('"data":{}', '"data":{},"d\\u0061ta":{}'),
  ]) {
    expect(quickEnvelope(bytes(twice))).toBeUndefined();
    expect(() => readEnvelope(bytes(twice))).toThrowError(expect.objectContaining({ code: "invalid_frame" }));
  }
});

test("every call and result of ours without action, metadata or error is read quickly", () => {
  const head = { invocation_id: "i", function_id: "a::b", traceparent: "00-1-2-01", baggage: "a=b,c=d", timeout_ms: 30_000 };
  const call = new CallHead({ ...head, parent: "p", origin: "agent", session_id: "s" });
  const result = new ResultHead({ invocation_id: "i", function_id: "a::b", traceparent: "00-1-2-01", baggage: "a=b" });
  const frames = [
    encodeFrame(call, "data", '{"a":"}"}'),
    encodeFrame(new CallHead({ function_id: "a" }), "data", "1"),
    encodeFrame(result, "result", "null"),
  ];
  for (const frame of frames) {
    expect(quickEnvelope(frame)).toEqual(readEnvelope(frame));
    expect(quickEnvelope(frame)).toBeDefined();
  }
});
