import type { FunctionCallBlock } from "@iii/contracts";
import { expect, test } from "vitest";
import { advice, refusal } from "../ui/src/model/advice.ts";
import { denial, target } from "../ui/src/model/calls.ts";

const block = (args: unknown, function_id = "agent_trigger", more: Partial<FunctionCallBlock> = {}): FunctionCallBlock => ({
  type: "function_call",
  id: "c",
  function_id,
  arguments: args,
  ...more,
});

test.each([
  [
    "the meta tool's call is the call that it asks for",
    block({ function: "a::b", payload: { x: 1 } }),
    { function_id: "a::b", args: { x: 1 } },
  ],
  ["a payload in a string is read", block({ function: "a::b", payload: '{"x":1}' }), { function_id: "a::b", args: { x: 1 } }],
  ["a payload that is no JSON stays as it is", block({ function: "a::b", payload: "{x" }), { function_id: "a::b", args: "{x" }],
  ["a call without payload has empty arguments", block({ function: "a::b" }), { function_id: "a::b", args: {} }],
  [
    "arguments that did not parse are shown as written",
    block(null, "agent_trigger", { arguments_text: '{"fu' }),
    { function_id: "agent_trigger", args: '{"fu' },
  ],
  ["another tool is shown as itself", block({ function: "a::b" }, "other"), { function_id: "other", args: { function: "a::b" } }],
])("%s", (_title, call, expected) => {
  expect(target(call)).toEqual(expected);
});

test("a refusal says who refused and why; another result is none", () => {
  expect(denial({ status: "denied", denied_by: "user", reason: "too broad" })).toEqual({ by: "user", reason: "too broad" });
  expect(denial({ status: "ok" })).toBeUndefined();
  expect(denial(null)).toBeUndefined();
});

test("every problem has a code, a text and a next step", () => {
  expect(advice({ code: "model_unknown", message: "no model 'x'" })).toEqual({
    code: "model_unknown",
    text: "no model 'x'",
    next: "Choose a model from the list.",
  });
  expect(advice("odd").next).not.toBe("");
});

test("a decision that came too late names the first one", () => {
  expect(refusal("already_decided", { decision: "deny", by: "cli" })).toContain("deny by cli");
  expect(refusal("not_pending")).toContain("no longer waits");
});
