// The small pieces that engine, workers and page share: depth, waits, issue texts, globs, near names.
import { compileGlobs, issueText, isTooDeep, MAX_DEPTH, nearest, sleep, whenAborted, within } from "@iii/sdk";
import { ManualClock } from "@iii/sdk/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";

function nested(depth: number, kind: "list" | "object"): unknown {
  let value: unknown = kind === "list" ? [] : {};
  for (let level = 1; level < depth; level += 1) value = kind === "list" ? [value] : { __proto__x: 1, inner: value };
  return value;
}

test.each(["list", "object"] as const)("a %s of the greatest depth is taken, one more is not", (kind) => {
  expect(isTooDeep(nested(MAX_DEPTH, kind))).toBe(false);
  expect(isTooDeep(nested(MAX_DEPTH + 1, kind))).toBe(true);
  expect(isTooDeep(nested(200_000, kind))).toBe(true);
});

test("a cycle is too deep, and a scalar never is", () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  expect(isTooDeep(cycle)).toBe(true);
  expect([undefined, null, 1, "x", true].map((value) => isTooDeep(value))).toEqual([false, false, false, false, false]);
});

test("M2 every wrong field is named at once, with what it should be", () => {
  const schema = z.strictObject({
    scope: z.string(),
    key: z.string(),
    n: z.int(),
    mode: z.enum(["a", "b"]),
    rows: z.array(z.strictObject({ x: z.number() })),
  });
  const wrong = schema.safeParse({ scope: 7, n: 1.5, mode: "c", rows: [{ x: "1", y: 2 }] });
  expect(issueText(wrong.error as z.ZodError)).toBe(
    "'scope' must be a text, not a number; 'key' is missing (a text); 'n' must be a whole number, not a number; " +
      "'mode' must be \"a\" or \"b\"; 'rows.0.x' must be a number, not a text; 'rows.0' has an unknown key: 'y'",
  );
  expect(issueText(schema.safeParse("x").error as z.ZodError)).toBe("the payload must be an object, not a text");
});

test.each([
  [
    "a union of shapes",
    z.union([z.string(), z.number()]),
    true,
    "the payload must be a text, not true or false, or must be a number, not true or false",
  ],
  ["a rule of its own", z.string().min(3), "x", /^the payload is wrong: Too small/],
  ["a key that is not there", z.object({ a: z.enum(["x"]) }), {}, /^'a' /],
])("the issue of %s is said in words", (_title, schema, value, text) => {
  const found = issueText((schema as z.ZodType).safeParse(value).error as z.ZodError);
  if (typeof text === "string") expect(found).toBe(text);
  else expect(found).toMatch(text);
});

test("a wait ends by time, by the signal, or by what it waits for", async () => {
  const clock = new ManualClock();
  const over = new AbortController();
  const slept = sleep(clock, 1_000).then(() => "slept");
  const stopped = sleep(clock, 1_000, over.signal).then(() => "stopped");
  const late = within(clock, 500, new Promise<string>(() => {}), () => "late");
  const early = within(clock, 500, Promise.resolve("early"), () => "late");
  const failed = within(clock, 500, new Promise<string>(() => {}), () => {
    throw new Error("too late");
  });
  const refused = expect(failed).rejects.toThrow("too late");
  over.abort();
  expect(await stopped).toBe("stopped");
  await whenAborted(over.signal);
  await clock.advance(1_000);
  expect(await Promise.all([slept, late, early])).toEqual(["slept", "late", "early"]);
  await refused;
  expect(clock.pending).toBe(0);
});

test("K8.1, K8.2 a step of the wall clock moves no timer and no deadline", async () => {
  const clock = new ManualClock();
  const before = { wall: clock.now(), monotonic: clock.monotonic() };
  let fired = 0;
  clock.setTimer(() => {
    fired += 1;
  }, 3_000);
  clock.step(-3 * 3_600_000);
  expect([clock.now() - before.wall, clock.monotonic() - before.monotonic]).toEqual([-3 * 3_600_000, 0]);
  await clock.advance(2_999);
  clock.step(5 * 3_600_000);
  expect(fired).toBe(0);
  await clock.advance(1);
  expect(fired).toBe(1);
});

test("globs match whole names; an exclusion wins wherever it stands", () => {
  const matches = compileGlobs(["!approval::list_pending", "approval::*", "a*b*c"]);
  expect(["approval::resolve", "approval::list_pending", "xapproval::y", "a1b2c", "acb", "abc"].map(matches)).toEqual([
    true,
    false,
    false,
    true,
    false,
    true,
  ]);
});

test("a pattern means the same as its regular expression", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "*", ":", "."), maxLength: 8 });
  fc.assert(
    fc.property(text, text, (pattern, name) => {
      const body = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
      expect(compileGlobs([`x${pattern}`])(`x${name}`)).toBe(new RegExp(`^x${body.join("[^]*")}$`).test(`x${name}`));
    }),
  );
});

test("a slip of the hand finds the name, anything else does not", () => {
  expect(nearest("wrker", ["start", "worker", "trigger"])).toBe("worker");
  expect(nearest("banana", ["start", "worker", "trigger"])).toBeUndefined();
});
