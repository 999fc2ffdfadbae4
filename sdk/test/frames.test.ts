// The table of frames: what its schemas refuse and let pass, and that the two hot frames are read by hand as their schemas read them.
import { FRAMES, type FrameType, readInvoke, readResult } from "@iii/sdk/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";

const odd = [0, 1, -1, -0, 2.5, 1e308, "", "x", "agent", "void", null, undefined, true, [], {}, { type: "void" }, "\u0000", "é", "a::b"];
const long = fc.constantFrom("f".repeat(256), "f".repeat(257), "é".repeat(256));
const action = fc.oneof(
  fc.constantFrom<unknown>(null, "enqueue", { type: "void", queue: 1 }, { type: "enqueue" }, { type: "later" }, [], 5),
  fc.record(
    {
      type: fc.constantFrom<unknown>("void", "enqueue", "x", 1),
      queue: fc.constantFrom<unknown>("", "q", 1, null),
      delay_ms: fc.constantFrom<unknown>(...odd),
      dedupe_key: fc.constantFrom<unknown>(...odd),
    },
    { requiredKeys: [] },
  ),
);
const value = fc.oneof(fc.constantFrom<unknown>(...odd), fc.jsonValue(), long, action);
const mostly = <T>(usual: T) => fc.oneof({ weight: 3, arbitrary: fc.constant<unknown>(usual) }, { weight: 1, arbitrary: value });

/** Absent, undefined and null mean the same in a head. */
function bare(object: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([, member]) => member !== undefined && member !== null));
}

test("a call's head is read by hand as its schema reads it: refused together, or equal", () => {
  const keys = ["invocation_id", "traceparent", "baggage", "metadata", "timeout_ms", "parent", "origin", "session_id", "context", "other"];
  const head = fc.record(
    {
      ...Object.fromEntries(keys.map((key) => [key, value])),
      type: fc.constant("invokefunction"),
      function_id: mostly("a::b"),
      origin: mostly("agent"),
      action: fc.oneof(action, fc.constant(undefined)),
    },
    { requiredKeys: ["type", "function_id"] },
  );
  let read = 0;
  const check = (given: Record<string, unknown>): void => {
    const byHand = readInvoke(given);
    const bySchema = FRAMES.invokefunction.safeParse(given);
    expect(byHand !== undefined).toBe(bySchema.success);
    if (byHand === undefined || !bySchema.success) return;
    const { type: _type, context: _context, data: _data, action: wanted, ...rest } = bySchema.data;
    const { action: got, ...own } = byHand;
    expect(bare(own)).toEqual(bare(rest));
    expect(bare(got ?? {})).toEqual(bare(wanted ?? {}));
    read += 1;
  };
  fc.assert(fc.property(head, check), { numRuns: 3_000 });
  expect(read).toBeGreaterThan(500);
});

test("a result's head is read by hand as its schema reads it: refused together, or equal", () => {
  const head = fc.record(
    { type: fc.constant("invocationresult"), invocation_id: mostly("c"), function_id: value, error: value, traceparent: value },
    { requiredKeys: ["type"] },
  );
  let read = 0;
  const check = (given: Record<string, unknown>): void => {
    const byHand = readResult(given);
    const bySchema = FRAMES.invocationresult.safeParse(given);
    expect(byHand !== undefined).toBe(bySchema.success);
    if (byHand === undefined || !bySchema.success) return;
    const { invocation_id, error } = bySchema.data;
    expect(bare(byHand)).toEqual(bare({ invocation_id, error }));
    read += 1;
  };
  fc.assert(fc.property(head, check), { numRuns: 1_000 });
  expect(read).toBeGreaterThan(200);
});

test("whatever stands beside what a frame is about costs no frame: wrong types are as good as absent, unknown keys are dropped", () => {
  const needed: Partial<Record<FrameType, object>> = {
    registerfunction: { id: "a" },
    registertriggertype: { id: "t" },
    registertrigger: { id: "i", trigger_type: "t", function_id: "f" },
    unregistertrigger: { id: "i" },
    triggerregistrationresult: { id: "i" },
    workerregistered: { worker_id: "w" },
    registerservice: {},
    ping: {},
  };
  const beside = { description: 5, trigger_type: 5, function_id: 5, reattach_token: {}, max_frame_bytes: "1", unknown: 1, name: [] };
  for (const [type, about] of Object.entries(needed)) {
    const { success, data } = FRAMES[type as FrameType].safeParse({ ...beside, type, ...about });
    expect({ type, success }).toEqual({ type, success: true });
    expect(bare(data ?? {})).toEqual({ type, ...about });
  }
});

test.each<[FrameType, object]>([
  ["registerfunction", {}],
  ["registerfunction", { id: "" }],
  ["unregisterfunction", { id: 5 }],
  ["registertrigger", { id: "i" }],
  ["registertrigger", { id: "i", trigger_type: "t", function_id: 5 }],
  ["cancel", { invocation_id: null }],
  ["reattach", { previous_worker_id: 5, reattach_token: [] }],
])("a '%s' of %j is refused for what it lacks", (type, about) => {
  expect(FRAMES[type].safeParse({ type, ...about }).success).toBe(false);
});
