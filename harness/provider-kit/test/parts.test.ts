// The pure parts of the kit, row by row.
import type { AgentMessage, AssistantMessage, FunctionResultMessage } from "@iii/contracts";
import { describe, expect, test } from "vitest";
import { scrubber } from "../src/answer/scrub.ts";
import { classifyHttp, resultText, retryAfterMs, saysOverflow, thinkingBudget } from "../src/index.ts";
import { joinEndpoint } from "../src/request/endpoint.ts";
import { paired } from "../src/request/pairing.ts";
import { toolNames } from "../src/request/tool-names.ts";

const call = (id: string) => ({ type: "function_call" as const, id, function_id: "f", arguments: {} });
const assistant = (ids: string[], stop_reason: AssistantMessage["stop_reason"] = "function_call"): AssistantMessage => ({
  role: "assistant",
  content: ids.map(call),
  stop_reason,
  model: "m",
  provider: "p",
  timestamp: 1,
});
const result = (id: string, text: string): FunctionResultMessage => ({
  role: "function_result",
  function_call_id: id,
  function_id: "f",
  content: [{ type: "text", text }],
  details: null,
  is_error: false,
  timestamp: 2,
});

describe("pairing", () => {
  const resultsOf = (messages: AgentMessage[]) =>
    paired(messages).flatMap((turn) =>
      turn.role === "assistant" ? [turn.results.map((one) => [one.function_call_id, resultText(one), one.is_error])] : [],
    );

  test("results stand in the order of their calls, the latest one counts", () => {
    expect(resultsOf([assistant(["a", "b"]), result("b", "b1"), result("a", "a1"), result("b", "b2")])).toEqual([
      [
        ["a", "a1", false],
        ["b", "b2", false],
      ],
    ]);
  });
  test("a call without a result gets an error result, a result without a call is dropped", () => {
    const [first] = resultsOf([assistant(["a"]), result("ghost", "?")]);
    expect(first?.[0]?.[0]).toBe("a");
    expect(first?.[0]?.[2]).toBe(true);
  });
  test("an id that is used again belongs to the newer call from there on", () => {
    expect(resultsOf([assistant(["a"]), result("a", "one"), assistant(["a"]), result("a", "two")])).toEqual([
      [["a", "one", false]],
      [["a", "two", false]],
    ]);
  });
  test.each(["error", "aborted"] as const)("calls of a message that ended as %s are not replayed", (stop) => {
    expect(paired([assistant(["a"], stop)])).toMatchObject([{ content: [], results: [] }]);
  });
  test("a denial is said as one", () => {
    const details = { schema_version: 1, status: "denied", denied_by: "user", function_id: "f", reason: "no" };
    expect(resultText({ ...result("a", "Denied."), details })).toMatch(/^\[PERMISSION_DENIED\]\n\{.*"denied_by":"user".*\}\n\nDenied\.$/);
  });
});

describe("failures", () => {
  test.each([
    "prompt is too long: 213462 tokens > 200000 maximum",
    "Your input exceeds the context window of this model.",
    "The input token count (1048577) exceeds the maximum number of tokens allowed",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
    "Please reduce the length of the messages or completion.",
    "400 (no body)",
    "model_context_window_exceeded",
  ])("says that the prompt does not fit: %s", (text) => expect(saysOverflow(text)).toBe(true));

  test.each(["429 too many tokens per minute", "Rate limit reached: maximum context length of requests", "bad request"])(
    "does not: %s",
    (text) => expect(saysOverflow(text)).toBe(false),
  );

  test.each([
    [401, "", "auth_expired"],
    [403, "", "auth_expired"],
    [429, "prompt tokens per minute", "rate_limited"],
    [413, "", "context_overflow"],
    [400, "", "context_overflow"],
    [400, "no such field", "permanent"],
    [404, "model not found", "permanent"],
    [408, "", "transient"],
    [500, "", "transient"],
    [529, "overloaded", "transient"],
  ])("%i '%s' is %s", (status, text, kind) => expect(classifyHttp(status, text).kind).toBe(kind));

  test.each([
    [{ "retry-after": "2" }, 2_000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after-ms": "120", "retry-after": "9" }, 120],
    [{ "retry-after": "Thu, 01 Jan 1970 00:00:30 GMT" }, 20_000],
    [{ "retry-after": "soon" }, undefined],
    [{}, undefined],
  ])("%j is a pause of %s ms", (headers, ms) => expect(retryAfterMs(headers as Record<string, string>, 10_000)).toBe(ms));
});

test("a long text from a vendor is classified at once, whatever it repeats", () => {
  const started = performance.now();
  expect(saysOverflow("input token count ".repeat(14_400))).toBe(false);
  expect(performance.now() - started).toBeLessThan(1_000);
});

test("tool names survive the way there and back, also where the rule alone is ambiguous", () => {
  const ids = ["a::b", "a__b", "a.b", "a_b", `${"x".repeat(80)}1`, `${"x".repeat(80)}2`];
  const names = toolNames(ids);
  const encoded = ids.map(names.encode);
  expect(new Set(encoded).size).toBe(ids.length);
  for (const name of encoded) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  expect(encoded.map(names.decode)).toEqual(ids);
  expect(names.decode("shell__fs__ls")).toBe("shell::fs::ls");
});

test("a secret never stays in a message, known or only shaped like one", () => {
  const clean = scrubber(["my-very-own-key"]);
  expect(clean.message("got my-very-own-key and sk-ant-api03-abcdefgh and Bearer abc.defgh")).toBe(
    "got [redacted] and [redacted] and Bearer [redacted]",
  );
});

test.each([
  ["http://h:1", "/v1/messages", "http://h:1/v1/messages"],
  ["http://h:1/v1/", "/v1/messages", "http://h:1/v1/messages"],
  ["http://h:1/v1/messages", "/v1/messages", "http://h:1/v1/messages"],
  ["http://h:1/gateway", "/v1/messages", "http://h:1/gateway/v1/messages"],
])("%s with %s is %s", (base, path, url) => expect(joinEndpoint(base, path)).toBe(url));

test.each([
  ["off", 8192, undefined],
  ["low", 8192, 4000],
  ["high", 8192, 7168],
  ["xhigh", 40_000, 16_000],
  ["medium", 1500, undefined],
] as const)("thinking %s within %i tokens gets %s", (level, max, budget) => {
  const model = {
    id: "m",
    provider: "p",
    api: "a",
    display_name: "m",
    context_window: 1,
    max_output_tokens: 64_000,
    supports_thinking: true,
  };
  expect(thinkingBudget(level, model, max)).toBe(budget);
});
