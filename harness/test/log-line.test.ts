import { expect, test } from "vitest";
import { logLine } from "../boot/log-line.ts";

// Colours are off where there is no terminal, or stripped here.
const ESCAPE = String.fromCharCode(27);
const read = (process: string, text: string) => logLine(process, text).replaceAll(new RegExp(`${ESCAPE}\\[\\d+m`, "g"), "");

test.each([
  [
    "a record says whose it is and what",
    '{"level":"info","time":1,"pid":2,"name":"host","worker":"policy","rules":64,"msg":"rules in force"}',
    "policy             rules in force rules=64",
  ],
  ["a plain line stays as it is", "listening on 80", "host               listening on 80"],
  ["JSON that is no record stays as it is", '{"a":1}', 'host               {"a":1}'],
  ["a broken record stays as it is", '{"level":', 'host               {"level":'],
  ["what a worker writes cannot move the cursor", '{"level":"warn","msg":"a\\u001b[2Jb"}', "host               a\\u{1b}[2Jb"],
  ["further lines of a record stay below the first", '{"level":"warn","msg":"a\\nb"}', "host               a\n                   b"],
])("%s", (_title, text, expected) => {
  expect(read("host", text)).toBe(expected);
});
