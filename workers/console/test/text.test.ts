import { expect, test } from "vitest";
import { ago, dollars, duration, glance, headline, pretty } from "../ui/src/model/text.ts";

test("arguments are shown whole, a glance is cut", () => {
  const args = { command: "x".repeat(500), cwd: "." };
  expect(pretty(args)).toContain("x".repeat(500));
  expect([...glance(args)].length).toBeLessThanOrEqual(90);
  expect(glance({ path: ".", deep: { a: 1 } })).toBe('path=. deep={"a":1}');
});

test("a headline is the first line", () => {
  expect(headline("  first line\nsecond")).toBe("first line");
});

test.each([
  [0.2, "200 µs"],
  [4.25, "4.3 ms"],
  [455, "455 ms"],
  [1234, "1.23 s"],
  [61_500, "1 min 1 s"],
  [7_320_000, "2 h 2 min"],
])("%d ms reads %s", (ms, words) => {
  expect(duration(ms)).toBe(words);
});

test("money keeps the digits that make it more than nothing", () => {
  expect([dollars(0), dollars(0.00042), dollars(1.239)]).toEqual(["$0.00", "$0.00042", "$1.24"]);
});

test("ages are one word", () => {
  expect([ago(3_000), ago(120_000), ago(7_200_000), ago(172_800_000)]).toEqual(["now", "2m", "2h", "2d"]);
});
