import { expect, test } from "vitest";
import { readPayload, readTimeout } from "../cli/payload.ts";

test.each<[string, string[], string | undefined, unknown]>([
  ["nothing is an empty object", [], undefined, {}],
  ["words are text", ["scope=a b"], undefined, { scope: "a b" }],
  ["a word that is JSON is taken as that", ["n=5", "on=true", 'o={"a":1}'], undefined, { n: 5, on: true, o: { a: 1 } }],
  ["a value may hold '='", ["q=a=b"], undefined, { q: "a=b" }],
  ["data is the payload", [], "[1,2]", [1, 2]],
  ["words override data", ["a=2"], '{"a":1,"b":3}', { a: 2, b: 3 }],
])("%s", (_title, words, data, expected) => {
  expect(readPayload(words, data)).toEqual(expected);
});

test.each<[string, string[], string | undefined]>([
  ["data that is not JSON", [], "{"],
  ["a word without a key", ["=1"], undefined],
  ["a word without a value", ["abc"], undefined],
  ["words over a list", ["a=1"], "[]"],
])("%s is a usage error", (_title, words, data) => {
  expect(() => readPayload(words, data)).toThrow(expect.objectContaining({ code: "usage" }));
});

test.each(['{"x":1}', '{"x":"a=b"}', "[1]", '"text"', ' {"x":1}'])(
  "M4 JSON in the place of key=value (%s) is pointed to --data",
  (word) => {
    expect(() => readPayload([word], undefined)).toThrow(
      expect.objectContaining({ code: "usage", message: `'${word}' is not key=value; JSON goes after --data` }),
    );
  },
);

test.each(["abc", "", "0", "-5", "1.5", "1e3", "NaN", "Infinity", "99999999999", "5s", " 5"])(
  "M3 a time-out of '%s' is a usage error",
  (text) => {
    expect(() => readTimeout(text)).toThrow(expect.objectContaining({ code: "usage" }));
  },
);

test("a time-out is a number of milliseconds", () => {
  expect([readTimeout("1"), readTimeout("30000")]).toEqual([1, 30_000]);
});
