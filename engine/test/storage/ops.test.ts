import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyOps } from "../../src/builtin/storage/ops.ts";
import type { StateOp } from "../../src/builtin/storage/state/contract.ts";

type Row = { title: string; before?: unknown; ops: StateOp[]; after: unknown; code?: string };
const deep = (levels: number): unknown => (levels === 0 ? 1 : { in: deep(levels - 1) });

const rows: Row[] = [
  { title: "set replaces the root", before: 1, ops: [{ type: "set", path: "", value: { a: 1 } }], after: { a: 1 } },
  { title: "set makes a first-level key", ops: [{ type: "set", path: "a.b", value: 1 }], after: { "a.b": 1 } },
  { title: "set without a value is null", before: {}, ops: [{ type: "set", path: "a" }], after: { a: null } },
  {
    title: "set on an array is refused",
    before: [1],
    ops: [{ type: "set", path: "a", value: 1 }],
    after: [1],
    code: "set.target_not_object",
  },
  {
    title: "set on null is refused",
    before: null,
    ops: [{ type: "set", path: "a", value: 1 }],
    after: null,
    code: "set.target_not_object",
  },
  { title: "merge at the root", before: { a: 1 }, ops: [{ type: "merge", value: { b: 2 } }], after: { a: 1, b: 2 } },
  { title: "merge at a key", before: {}, ops: [{ type: "merge", path: "k", value: { b: 2 } }], after: { k: { b: 2 } } },
  {
    title: "merge at a nested path replaces what is no object",
    before: { a: 5 },
    ops: [{ type: "merge", path: ["a", "b"], value: { c: 1 } }],
    after: { a: { b: { c: 1 } } },
  },
  {
    title: "merge into a root that is no object does nothing",
    before: "x",
    ops: [{ type: "merge", path: [], value: { a: 1 } }],
    after: "x",
  },
  { title: "merge takes objects only", before: {}, ops: [{ type: "merge", value: [1] }], after: {}, code: "merge.value.not_an_object" },
  {
    title: "merge limits keys",
    before: {},
    ops: [{ type: "merge", value: Object.fromEntries(Array.from({ length: 1025 }, (_, n) => [`k${n}`, n])) }],
    after: {},
    code: "merge.value.too_many_keys",
  },
  { title: "merge limits depth", before: {}, ops: [{ type: "merge", value: deep(17) }], after: {}, code: "merge.value.too_deep" },
  { title: "merge takes 16 levels", before: {}, ops: [{ type: "merge", value: deep(16) }], after: deep(16) },
  {
    title: "merge refuses polluted keys",
    before: {},
    ops: [{ type: "merge", value: JSON.parse('{"__proto__":{"x":1}}') as unknown }],
    after: {},
    code: "merge.value.proto_polluted",
  },
  { title: "increment makes a missing key", ops: [{ type: "increment", path: "n", by: 2 }], after: { n: 2 } },
  { title: "decrement makes a missing key negative", ops: [{ type: "decrement", path: "n", by: 2 }], after: { n: -2 } },
  { title: "increment at the root of nothing", ops: [{ type: "increment", path: "", by: 2 }], after: 2 },
  { title: "increment keeps floats", before: { n: 1.5 }, ops: [{ type: "increment", path: "n", by: 1 }], after: { n: 2.5 } },
  {
    title: "increment of text",
    before: { n: "1" },
    ops: [{ type: "increment", path: "n", by: 1 }],
    after: { n: "1" },
    code: "increment.not_number",
  },
  {
    title: "increment past the largest integer",
    before: { n: Number.MAX_SAFE_INTEGER },
    ops: [{ type: "increment", path: "n", by: 1 }],
    after: { n: Number.MAX_SAFE_INTEGER },
    code: "increment.not_number",
  },
  {
    title: "decrement in a number",
    before: 5,
    ops: [{ type: "decrement", path: "n", by: 1 }],
    after: 5,
    code: "decrement.target_not_object",
  },
  { title: "append pushes", before: { a: [1] }, ops: [{ type: "append", path: "a", value: [2] }], after: { a: [1, [2]] } },
  { title: "append joins text", before: { a: "x" }, ops: [{ type: "append", path: "a", value: "y" }], after: { a: "xy" } },
  { title: "append starts a list", before: { a: null }, ops: [{ type: "append", path: "a", value: 1 }], after: { a: [1] } },
  { title: "append starts a text", before: {}, ops: [{ type: "append", path: "a", value: "x" }], after: { a: "x" } },
  {
    title: "append at a nested path always starts a list",
    before: {},
    ops: [{ type: "append", path: ["a", "b"], value: "x" }],
    after: { a: { b: ["x"] } },
  },
  { title: "append at the root of nothing", ops: [{ type: "append", value: 1 }], after: [1] },
  {
    title: "append to a number",
    before: { a: 1 },
    ops: [{ type: "append", path: "a", value: 1 }],
    after: { a: 1 },
    code: "append.type_mismatch",
  },
  {
    title: "append below an array",
    before: [1],
    ops: [{ type: "append", path: "a", value: 1 }],
    after: [1],
    code: "append.target_not_object",
  },
  { title: "remove takes a key away", before: { a: 1, b: 2 }, ops: [{ type: "remove", path: "a" }], after: { b: 2 } },
  { title: "remove of the root leaves null", before: { a: 1 }, ops: [{ type: "remove", path: "" }], after: null },
  { title: "remove from text", before: "x", ops: [{ type: "remove", path: "a" }], after: "x", code: "remove.target_not_object" },
  { title: "no operation on nothing stores an object", ops: [], after: {} },
  { title: "polluted path", before: {}, ops: [{ type: "set", path: "__proto__", value: 1 }], after: {}, code: "set.path.proto_polluted" },
  { title: "long segment", before: {}, ops: [{ type: "remove", path: "ä".repeat(129) }], after: {}, code: "remove.path.segment_too_long" },
  {
    title: "empty segment",
    before: {},
    ops: [{ type: "append", path: ["a", ""], value: 1 }],
    after: {},
    code: "append.path.empty_segment",
  },
  {
    title: "deep path",
    before: {},
    ops: [{ type: "merge", path: Array.from({ length: 33 }, () => "a"), value: {} }],
    after: {},
    code: "merge.path.too_deep",
  },
];

describe("state operations", () => {
  test.each(rows)("$title", ({ before, ops, after, code }) => {
    const result = applyOps(before, ops);
    expect(result.value).toEqual(after);
    expect(result.errors.map((error) => error.code)).toEqual(code === undefined ? [] : [code]);
  });

  test("a failing operation is skipped and those after it still run", () => {
    const result = applyOps({ n: 1 }, [
      { type: "append", path: "n", value: 1 },
      { type: "increment", path: "n", by: 1 },
    ]);
    expect(result).toEqual({ value: { n: 2 }, errors: [{ op_index: 0, code: "append.type_mismatch", message: expect.any(String) }] });
  });

  test("names that every object inherits are ordinary keys", () => {
    expect(applyOps({}, [{ type: "increment", path: "toString", by: 1 }]).value).toEqual({ toString: 1 });
  });

  const key = fc.constantFrom("a", "b", "c");
  const op: fc.Arbitrary<StateOp> = fc.oneof(
    fc.record({ type: fc.constant("set" as const), path: fc.constantFrom("", "a", "b"), value: fc.jsonValue() }),
    fc.record({ type: fc.constant("merge" as const), path: fc.array(key, { maxLength: 3 }), value: fc.dictionary(key, fc.jsonValue()) }),
    fc.record({ type: fc.constant("append" as const), path: fc.array(key, { maxLength: 3 }), value: fc.jsonValue() }),
    fc.record({ type: fc.constant("increment" as const), path: fc.constantFrom("", "a"), by: fc.integer() }),
    fc.record({ type: fc.constant("remove" as const), path: fc.constantFrom("", "a") }),
  );
  test("the old value is never changed, and the new one is JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(op, { maxLength: 8 }), (before, ops) => {
        const copy = JSON.stringify(before);
        const { value } = applyOps(before, ops);
        expect(JSON.stringify(before)).toBe(copy);
        expect(JSON.parse(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});
