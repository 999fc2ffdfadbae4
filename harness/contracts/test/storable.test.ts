// What may become content.
import { expect, test } from "vitest";
import { bytesOf, CONTENT_DEPTH, unstorable } from "../src/storable.ts";

const nested = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
};

test.each([
  ["as deep as allowed", nested(CONTENT_DEPTH), undefined],
  ["one level deeper", nested(CONTENT_DEPTH + 1), "payload_too_deep"],
  ["deeper than a recursion may go", nested(200_000), "payload_too_deep"],
  ["as large as allowed", "x".repeat(98), undefined],
  ["one byte larger", "x".repeat(99), "payload_too_large"],
])("%s", (title, value, code) => {
  const limit = title.includes("large") ? 100 : Number.POSITIVE_INFINITY;
  expect(unstorable(value, limit)?.code).toBe(code);
});

test("bytes are those of UTF-8", () => {
  expect(bytesOf("é🌍")).toBe(2 + 2 + 4);
  expect(bytesOf(undefined)).toBe(0);
});
