// The pure parts around the machine: unwrapping calls, building the model's context, decoding answers, near ids.
import type { AgentMessage, AssistantMessage } from "@iii/contracts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { mergeEntries, modelMessages } from "../src/effects/context.ts";
import { idHint, planCalls, uniqueCallIds, unwrap } from "../src/machine/plan.ts";
import { capResult, cut, decodeAnswer, denied, RESULT_LIMIT, resultLimit } from "../src/machine/results.ts";
import { systemPrompt } from "../src/run/prompt.ts";

const block = (args: unknown, extra: object = {}) => ({
  type: "function_call" as const,
  id: "c",
  function_id: "agent_trigger",
  arguments: args,
  ...extra,
});

test.each([
  ["an object payload", { function: "a::b", payload: { x: 1 } }, { function_id: "a::b", args: { x: 1 } }],
  ["no payload", { function: "a::b" }, { function_id: "a::b", args: {} }],
  ["a payload that is JSON in a string", { function: "a::b", payload: '{"x":1}' }, { function_id: "a::b", args: { x: 1 } }],
])("unwraps %s", (_title, args, expected) => {
  expect(unwrap(block(args))).toMatchObject(expected);
});

test.each([
  ["arguments that did not parse", block(null, { arguments_text: '{"path":"/a' }), "invalid_arguments"],
  ["a payload that is a list", block({ function: "a::b", payload: [] }), "invalid_arguments"],
  ["a payload that is other text", block({ function: "a::b", payload: "ls" }), "invalid_arguments"],
  ["no function", block({ payload: {} }), "missing_function"],
  ["a function id with a space", block({ function: "a b" }), "missing_function"],
  ["another tool", { ...block({}), function_id: "bash" }, "missing_function"],
])("answers %s without asking anyone", (_title, bad, error) => {
  expect(unwrap(bad)).toMatchObject({ is_error: true, result: { details: { error } } });
  const message: AssistantMessage = {
    role: "assistant",
    content: [bad],
    stop_reason: "function_call",
    model: "m",
    provider: "p",
    timestamp: 1,
  };
  expect(planCalls(message)[0]).toMatchObject({ call: { phase: "planned" }, settled: { is_error: true } });
});

test("call ids become key-safe and unlike every one that was used", () => {
  const content = ["a", "a", "b/c", "used", "ü", ""].map((id) => ({ ...block({}), id }));
  const message: AssistantMessage = { role: "assistant", content, stop_reason: "function_call", model: "m", provider: "p", timestamp: 1 };
  const ids = uniqueCallIds(message, new Set(["used"]), "p").content.map((part) => part.type === "function_call" && part.id);
  expect(ids).toEqual(["a", "p_1", "p_2", "p_3", "p_4", "p_5"]);
});

const anyMessage: fc.Arbitrary<AgentMessage> = fc.oneof(
  fc.constant<AgentMessage>({ role: "user", content: [{ type: "text", text: "u" }], timestamp: 1 }),
  fc.constant<AgentMessage>({ role: "custom", custom_type: "note", content: "n", timestamp: 1 }),
  fc
    .record({
      ids: fc.uniqueArray(fc.constantFrom("a", "b", "c"), { maxLength: 3 }),
      stop: fc.constantFrom("end", "function_call", "error", "aborted", "length"),
    })
    .map(
      ({ ids, stop }): AgentMessage => ({
        role: "assistant",
        content: ids.map((id) => ({ ...block({}), id })),
        stop_reason: stop as AssistantMessage["stop_reason"],
        model: "m",
        provider: "p",
        timestamp: 1,
      }),
    ),
  fc.constantFrom("a", "b", "c", "d").map(
    (id): AgentMessage => ({
      role: "function_result",
      function_call_id: id,
      function_id: "f",
      content: [],
      details: {},
      is_error: false,
      timestamp: 1,
    }),
  ),
);

test("case 23: whatever the history, no orphan call and no orphan result is sent", () => {
  const property = fc.property(fc.array(anyMessage, { maxLength: 12 }), (history) => {
    let open: string[] = [];
    for (const message of modelMessages(history)) {
      expect(message.role).not.toBe("custom");
      if (message.role === "function_result") {
        expect(open).toContain(message.function_call_id);
        open = open.filter((id) => id !== message.function_call_id);
        continue;
      }
      expect(open).toEqual([]);
      if (message.role === "assistant") open = message.content.flatMap((part) => (part.type === "function_call" ? [part.id] : []));
    }
    expect(open).toEqual([]);
  });
  fc.assert(property, { numRuns: 500 });
});

test("entries that are stored and still pending count once", () => {
  const entry = (id: string) => ({ entry_id: id, message: { role: "user" as const, content: [], timestamp: 1 } });
  expect(mergeEntries([entry("a"), entry("b")], [entry("b"), entry("c")]).map((merged) => merged.entry_id)).toEqual(["a", "b", "c"]);
});

test.each([
  ["text", "hi", "hi", false],
  ["nothing", null, "(done, no output)", false],
  ["data with its own 'error' field", { error: "none of ours" }, '{"error":"none of ours"}', false],
  ["a shaped result", { content: [{ type: "text", text: "x" }] }, "x", false],
  ["a shaped error", { content: [{ type: "text", text: "x" }], is_error: true }, "x", true],
  ["a list called content that holds no blocks", { content: [1] }, '{"content":[1]}', false],
])("decodes %s", (_title, value, text, is_error) => {
  expect(decodeAnswer(value)).toMatchObject({ is_error, result: { content: [{ type: "text", text }] } });
});

test("case 58: cutting never leaves half a character", () => {
  const property = fc.property(fc.string({ unit: "binary", maxLength: 40 }), fc.nat(45), (value, at) => {
    expect(cut(value, at).isWellFormed()).toBe(true);
  });
  fc.assert(property);
});

test.each([1, 24, 40, 200])("the results of a batch of %i fit into one record, whatever its functions answer", (calls) => {
  const limit = resultLimit(calls);
  expect(limit).toBeLessThanOrEqual(RESULT_LIMIT);
  const answer = { content: [{ type: "text" as const, text: '"'.repeat(400_000) }], details: { again: "é".repeat(200_000) } };
  const { result } = capResult({ result: answer, is_error: false }, { scope: "results", key: "s/c" }, limit);
  const whole = { content: [{ type: "text" as const, text: "x".repeat(limit - 100) }], details: { again: "x".repeat(limit - 100) } };
  const kept = capResult({ result: whole, is_error: false }, { scope: "results", key: "s/c" }, limit).result;
  for (const one of [result, kept]) expect(calls * JSON.stringify(one).length).toBeLessThan(14 * 1024 * 1024);
});

test("a result at the limit stays whole, one above it is cut", () => {
  const at = { scope: "results", key: "s/c" };
  expect(
    capResult({ result: { content: [{ type: "text", text: "x".repeat(1_000) }], details: {} }, is_error: false }, at).whole,
  ).toBeUndefined();
  expect(
    capResult({ result: { content: [{ type: "text", text: "é".repeat(RESULT_LIMIT) }], details: {} }, is_error: true }, at),
  ).toMatchObject({
    is_error: true,
    result: { details: { truncated: true, handle: at } },
  });
});

test("a denial shows arguments without their secrets", () => {
  const { result } = denied(
    { denied_by: "permissions", function_id: "f", reason: "no" },
    { api_key: "k", user_password: "p", path: "/a", authors: "x" },
  );
  expect(result.details).toMatchObject({ args_excerpt: { api_key: "<redacted>", user_password: "<redacted>", path: "/a", authors: "x" } });
});

test("a skill path is answered with the function it probably means", () => {
  expect(idHint("shell/skills/shell/exec")).toBe("shell::exec");
  expect(idHint("shell/exec")).toBe("shell::exec");
  expect(idHint("shell::exec")).toBeUndefined();
});

test("a verbatim prompt is the whole prompt; otherwise mode stands before identity", () => {
  expect(systemPrompt({ mode: "plan", system_prompt: "only this" })).toBe("only this");
  expect(systemPrompt({ mode: "plan", system_prompt: "" }).startsWith("You are in plan mode.")).toBe(true);
  expect(systemPrompt({ system_prompt: "" })).not.toContain("mode.");
});
