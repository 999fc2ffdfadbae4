// The vector scan beside the plain one: the same end, or the plain scan's word.
import { decodeFrame, readEnvelope, skipByVector, skipLarge } from "@iii/sdk/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { skipValue } from "../src/protocol/scan.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Where a value ends, or what is wrong with it. */
function verdict(skip: () => number): number | string {
  try {
    return skip();
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

/** Runs of what the masks must tell apart, long enough to lie across their borders. */
const odd = fc
  .array(
    fc.tuple(
      fc.constantFrom('"', "\\", '\\"', "\\\\", "{", "}", "[", "]", "{}", "[]", ",", ":", '"a":', '"}"', "é", "x", " ", '"\\\\"'),
      fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 2, max: 70 }) }),
    ),
    { maxLength: 40 },
  )
  .map((runs) => runs.map(([text, times]) => text.repeat(times)).join(""));

test("any bytes after an opening bracket have the same end for both, or are left to the plain scan", () => {
  let found = 0;
  const check = (lead: number, opener: string, text: string): void => {
    const all = bytes(`${" ".repeat(lead)}${opener}${text}`);
    const end = skipByVector(all, lead);
    if (end !== undefined) found += 1;
    if (end !== undefined) expect(end).toBe(skipValue(all, lead));
  };
  fc.assert(fc.property(fc.nat(130), fc.constantFrom("{", "["), odd, check), { numRuns: 8_000 });
  expect(found).toBeGreaterThan(500);
});

test("the end of any JSON object or array is found, wherever it lies, and whatever follows", () => {
  const value = fc.oneof(fc.array(fc.jsonValue(), { minLength: 1 }), fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }));
  const check = (json: unknown, lead: number, indent: number, pad: number): void => {
    const text = JSON.stringify({ json, pad: '"\\}'.repeat(pad) }, null, indent);
    const all = bytes(`${"é".repeat(lead)}${text},"x":{}}`);
    expect(skipByVector(all, 2 * lead)).toBe(2 * lead + bytes(text).length);
  };
  fc.assert(fc.property(value, fc.nat(70), fc.constantFrom(0, 2), fc.nat(200), check), { numRuns: 1_000 });
});

const pad = "p".repeat(2_000);
const WRONG = [
  ["no end", `{"a":"${pad}"`],
  ["a string that does not end", `{"a":"${pad}`],
  ["brackets of two kinds", `{"a":["${pad}"}}`],
  ["a closer too many", `{"a":"${pad}"}}`],
  ["a backslash outside of strings", `{"a":"${pad}",\\"b":"}"}`],
  ["deeper than there is room for", `${"[".repeat(70_000)}${"]".repeat(70_000)}`],
  ["just as deep as there is room for", `${"[".repeat(65_536)}${"]".repeat(65_536)}`],
  ["a string across two chunks", `{"a":"${"\\\\".repeat(40_000)}\\"}","b":[1]}`],
] as const;

test.each(WRONG)("%s: the same verdict as the plain scan's", (_title, text) => {
  for (let shift = 0; shift < 65; shift += 1) {
    const all = bytes(" ".repeat(shift) + text);
    expect(verdict(() => skipLarge(all, shift))).toBe(verdict(() => skipValue(all, shift)));
  }
});

test("a scan that broke off leaves nothing behind for the next one", () => {
  const good = bytes(`{"a":["${pad}"]}`);
  for (const [, text] of WRONG) {
    verdict(() => skipByVector(bytes(text), 0) ?? -1);
    expect(skipByVector(good, 0)).toBe(good.length);
  }
});

test("a large frame is read as by the plain scan, keys that stand behind its payload included", () => {
  const payload = JSON.stringify({ rows: Array.from({ length: 3_000 }, (_, n) => ({ n, text: `"${n}\\`, list: [[n], {}] })) });
  expect(payload.length).toBeGreaterThan(100_000);
  for (const frame of [
    `{"type":"invokefunction","invocation_id":"i","function_id":"a","data":${payload}}`,
    `{"data":${payload},"type":"invokefunction","function_id":"a"}`,
    `{"type":"invocationresult","invocation_id":"i","function_id":"a","result":${payload}}`,
  ])
    expect(decodeFrame(bytes(frame))).toEqual(readEnvelope(bytes(frame)));
  const forged = `{"type":"invokefunction","function_id":"a","data":${payload},"function_id":"b"}`;
  expect(() => decodeFrame(bytes(forged))).toThrowError(expect.objectContaining({ code: "invalid_frame" }));
});
