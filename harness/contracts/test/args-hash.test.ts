// The hash that binds an approval to what was shown.
import { expect, test } from "vitest";
import { argsSha256 } from "../src/args-hash.ts";

const call = { session_id: "s", function_call_id: "c", function_id: "f", args: { b: 1, a: [true, null, "é"] } };

test("key order does not matter", () => {
  expect(argsSha256({ args: { a: [true, null, "é"], b: 1 }, function_id: "f", function_call_id: "c", session_id: "s" })).toBe(
    argsSha256(call),
  );
});
test.each([
  ["session", { ...call, session_id: "t" }],
  ["call", { ...call, function_call_id: "d" }],
  ["function", { ...call, function_id: "F" }],
  ["value", { ...call, args: { ...call.args, b: 2 } }],
  ["order of a list", { ...call, args: { ...call.args, a: [null, true, "é"] } }],
  ["type", { ...call, args: { ...call.args, b: "1" } }],
])("another %s gives another hash", (_what, other) => expect(argsSha256(other)).not.toBe(argsSha256(call)));
test("it is SHA-256 of RFC 8785 text, so that others can compute it", () => {
  // printf '{"args":{},"function_call_id":"c","function_id":"f","session_id":"s"}' | sha256sum
  expect(argsSha256({ ...call, args: {} })).toBe("64ec0086573d208b30aaf92f43c84a5cd55f5ee78f4df2c49074c4823533f674");
});
