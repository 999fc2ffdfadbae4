import { plain } from "@iii/contracts/visible";
import { BusError } from "@iii/sdk";
import { expect, test } from "vitest";
import { pick } from "../cli/approvals.ts";
import { createOutput, exitCode, table } from "../cli/output.ts";

function capture(options: { json?: boolean; verbose?: boolean } = {}) {
  const seen = { out: "", err: "" };
  const streams = {
    out(text: string) {
      seen.out += text;
    },
    err(text: string) {
      seen.err += text;
    },
  };
  return { seen, output: createOutput(streams, { json: false, verbose: false, ...options }) };
}

test.each([
  ["config_invalid", 6],
  ["disconnected", 3],
  ["function_not_found", 4],
  ["FORBIDDEN", 5],
  ["TIMEOUT", 124],
  ["usage", 2],
  ["invalid_payload", 2],
  ["deserialization_error", 2],
  ["port_in_use", 7],
  ["data_in_use", 7],
  ["already_decided", 7],
  ["session_busy", 7],
  ["model_unknown", 4],
  ["invocation_failed", 1],
  ["a code of some worker", 1],
])("M5 an error %s exits with %i", (code, expected) => {
  expect(exitCode(new BusError(code, "x"))).toBe(expected);
});

test("--json prints one document on stdout, also for an empty list", () => {
  const { seen, output } = capture({ json: true });
  output.data([], () => "nothing");
  expect(seen).toEqual({ out: "[]\n", err: "" });
});

test("an error goes to stderr, with a hint and without a stack", () => {
  const { seen, output } = capture();
  expect(output.failed(new BusError("disconnected", "cannot reach the engine"))).toBe(3);
  expect(seen.out).toBe("");
  expect(seen.err).toBe("error: cannot reach the engine\nhint: start the stack with: pnpm start\n");
});

test("--verbose adds the stack", () => {
  const { seen, output } = capture({ verbose: true });
  output.failed(new BusError("TIMEOUT", "late"));
  expect(seen.err).toContain("output.test.ts");
});

test("text of workers and models cannot move the cursor or turn the reading direction", () => {
  expect(plain("a\u001b[2Jb\u202ec\nd\te")).toBe("a\\u{1b}[2Jb\\u{202e}c\nd\te");
});

test("columns line up", () => {
  expect(
    table([
      ["A", "B"],
      ["long", "x"],
    ]),
  ).toBe("A     B\nlong  x");
});

const row = (function_call_id: string) => ({
  session_id: "s",
  function_call_id,
  function_id: "f",
  args: {},
  args_sha256: "",
  requested_at: 0,
  expires_at: null,
});
test("a decision without an id needs exactly one pending call", () => {
  expect(pick([row("c1")], undefined).function_call_id).toBe("c1");
  expect(() => pick([], undefined)).toThrow(expect.objectContaining({ code: "NOT_FOUND" }));
  expect(() => pick([row("c1"), row("c2")], undefined)).toThrow(expect.objectContaining({ code: "usage" }));
  expect(pick([row("c1"), row("d2")], "d").function_call_id).toBe("d2");
});
