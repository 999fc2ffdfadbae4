import { expect, test } from "vitest";
import { wellFormed } from "../src/well-formed.ts";

test("every string is made well-formed, keys too, and nothing else changes", () => {
  expect(wellFormed({ "k\ud99c": ["a\ud83d", "🔥", 1, null, { deep: "\udc00" }], no: undefined })).toEqual({
    "k\ufffd": ["a\ufffd", "🔥", 1, null, { deep: "\ufffd" }],
    no: undefined,
  });
});
test("a key of the prototype stays a key", () => {
  expect(Object.hasOwn(wellFormed(JSON.parse('{"__proto__":{"a":1}}') as object), "__proto__")).toBe(true);
});
