// Anthropic's wire: recorded-style streams through the whole kit, requests row by row.
import { readFileSync } from "node:fs";
import type { AgentMessage, AssistantMessage, GenerateRequest } from "@iii/contracts";
import { bytes, conformance, play, requestOf } from "@iii/provider-kit/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classify } from "../src/errors.ts";
import { models } from "../src/models.ts";
import { spec } from "../src/register.ts";

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}.sse`, import.meta.url), "utf8");
const row = (id: string) => models.find((one) => one.id === id);
const events = (...list: object[]) => list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");

conformance(spec, [
  { title: "text", sse: fixture("text") },
  { title: "thinking and tools", sse: fixture("thinking-tools") },
]);

test("usage is cumulative, cache classes are apart, and the price is the hand sum", async () => {
  const model = row("claude-haiku-4-5");
  const { message } = await play(spec, [{ chunks: [bytes(fixture("text"))] }], model === undefined ? {} : { model });
  expect(message.content).toEqual([{ type: "text", text: "Grüße, 你好 🌍" }]);
  // 12 in at 1, 9 out at 5, 1500 read at 0.1, 300 written at 1.25 dollars per million
  const cost = (12 * 1 + 9 * 5 + 1500 * 0.1 + 300 * 1.25) / 1e6;
  expect(message.usage).toEqual({ input: 12, output: 9, cache_read: 1500, cache_write: 300, cost_usd: Math.round(cost * 1e9) / 1e9 });
});

test("thinking keeps its signature byte for byte, interleaved calls stay apart, both calls are there", async () => {
  const { message } = await play(spec, [{ chunks: [bytes(fixture("thinking-tools"))] }]);
  expect(message.stop_reason).toBe("function_call");
  expect(message.content).toEqual([
    { type: "thinking", text: "I should look twice.", signature: "EqQBCgIYAhIM+/==" },
    { type: "thinking", text: "", signature: { redacted: "RURBQ1RFRA==" } },
    {
      type: "function_call",
      id: "toolu_a",
      function_id: "agent_trigger",
      arguments: { function: "shell::fs::ls", payload: { path: "🔥" } },
    },
    { type: "function_call", id: "toolu_b", function_id: "shell::fs::ls", arguments: {} },
  ]);
});

test("A11 any split of the bytes into any number of chunks gives the same events", async () => {
  const all = bytes(fixture("thinking-tools"));
  const whole = await play(spec, [{ chunks: [all] }]);
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.nat(all.length), { maxLength: 12 }), async (cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), all.length];
      const chunks = edges.slice(1).map((edge, i) => all.subarray(edges[i], edge));
      expect((await play(spec, [{ chunks }])).events).toEqual(whole.events);
    }),
    { numRuns: 100 },
  );
});

describe("errors", () => {
  const start = { type: "message_start", message: { usage: { input_tokens: 5, output_tokens: 1 } } };
  const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  const delta = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "so far" } };

  test("an error event before output is tried again, after output it ends the answer and is never text", async () => {
    const first = await play(spec, [{ chunks: [bytes(events(start, overloaded))] }], { config: { max_retries: 0 } });
    expect(first.message).toMatchObject({ stop_reason: "error", error_kind: "transient", content: [] });
    const later = await play(spec, [{ chunks: [bytes(events(start, delta, overloaded))] }]);
    expect(later.attempts).toBe(1);
    expect(later.message).toMatchObject({
      stop_reason: "error",
      content: [{ type: "text", text: "so far" }],
      error_message: "overloaded_error: Overloaded",
    });
  });

  test.each([
    ["end_turn", "end", undefined],
    ["stop_sequence", "end", undefined],
    ["max_tokens", "length", undefined],
    ["pause_turn", "end", undefined],
    ["refusal", "error", "permanent"],
    ["model_context_window_exceeded", "error", "context_overflow"],
  ])("stop reason %s is %s", async (stop_reason, expected, kind) => {
    const sse = events(start, delta, { type: "message_delta", delta: { stop_reason } }, { type: "message_stop" });
    const { message } = await play(spec, [{ chunks: [bytes(sse)] }]);
    expect([message.stop_reason, message.error_kind]).toEqual([expected, kind]);
  });

  test.each([
    [401, "authentication_error", "invalid x-api-key", "auth_expired"],
    [429, "rate_limit_error", "tokens per minute", "rate_limited"],
    [400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum", "context_overflow"],
    [400, "invalid_request_error", "messages: at least one message is required", "permanent"],
    [404, "not_found_error", "model: claude-0", "permanent"],
    [413, "request_too_large", "Request exceeds the maximum size", "context_overflow"],
    [500, "api_error", "Internal server error", "transient"],
    [529, "overloaded_error", "Overloaded", "transient"],
  ])("%i %s '%s' is %s", (status, type, message, kind) => {
    expect(classify(status, {}, JSON.stringify({ type: "error", error: { type, message } })).kind).toBe(kind);
  });
});

describe("request", () => {
  const user = (text: string): AgentMessage => ({ role: "user", content: [{ type: "text", text }], timestamp: 1 });
  const assistant = (content: AssistantMessage["content"], provider = "anthropic"): AgentMessage => ({
    role: "assistant",
    content,
    stop_reason: "function_call",
    model: "m",
    provider,
    timestamp: 2,
  });
  const result = (id: string, text: string, is_error = false): AgentMessage => ({
    role: "function_result",
    function_call_id: id,
    function_id: "f",
    content: [{ type: "text", text }],
    details: null,
    is_error,
    timestamp: 3,
  });
  const call = (id: string) => ({ type: "function_call" as const, id, function_id: "shell::fs::ls", arguments: { path: "." } });
  const signed = { type: "thinking" as const, text: "hm", signature: "S+/=" };
  const build = (given: Partial<GenerateRequest>, id = "claude-haiku-4-5") => {
    const model = row(id);
    return requestOf(
      spec,
      { model: id, messages: [], ...given },
      { credential: { type: "api_key", key: "k" }, ...(model === undefined ? {} : { model }) },
    );
  };
  const body = async (given: Partial<GenerateRequest>, id?: string) => (await build(given, id)).body;

  test("results go into the next user message in the order of the calls, a missing one is made up", async () => {
    const messages = [user("hi"), assistant([{ type: "text", text: "ok" }, call("a"), call("b")]), result("b", "two", true), user("and?")];
    expect((await body({ messages }))["messages"]).toEqual([
      { role: "user", content: [{ type: "text", text: "hi" }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "ok" },
          { type: "tool_use", id: "a", name: "shell__fs__ls", input: { path: "." } },
          { type: "tool_use", id: "b", name: "shell__fs__ls", input: { path: "." } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: expect.stringContaining("no recorded result"), is_error: true },
          { type: "tool_result", tool_use_id: "b", content: "two", is_error: true },
          { type: "text", text: "and?" },
        ],
      },
    ]);
  });

  test("signed thinking goes back unchanged, unsigned or another vendor's is left out", async () => {
    const back = async (content: AssistantMessage["content"], provider?: string) =>
      JSON.stringify(await body({ messages: [user("hi"), assistant([...content, { type: "text", text: "t" }], provider), user("x")] }));
    expect(await back([signed])).toContain('{"type":"thinking","thinking":"hm","signature":"S+/="}');
    expect(await back([{ type: "thinking", text: "", signature: { redacted: "RED" } }])).toContain(
      '{"type":"redacted_thinking","data":"RED"}',
    );
    expect(await back([{ type: "thinking", text: "hm" }])).not.toContain("thinking");
    expect(await back([signed], "openai")).not.toContain("thinking");
  });

  test("images travel in user messages and results", async () => {
    const image = { type: "image" as const, mime: "image/png", data: "AAAA" };
    const messages: AgentMessage[] = [
      { role: "user", content: [image], timestamp: 1 },
      assistant([call("a")]),
      { role: "function_result", function_call_id: "a", function_id: "f", content: [image], details: null, is_error: false, timestamp: 3 },
    ];
    expect(JSON.stringify(await body({ messages })).match(/"media_type":"image\/png"/g)).toHaveLength(2);
  });

  test("thinking: a budget for older models, an effort for newer ones, nothing when it cannot be", async () => {
    expect((await body({ thinking_level: "low", messages: [user("x")] }))["thinking"]).toEqual({ type: "enabled", budget_tokens: 4000 });
    const newer = await body({ thinking_level: "xhigh", messages: [user("x")] }, "claude-opus-4-7");
    expect([newer["thinking"], newer["output_config"]]).toEqual([{ type: "adaptive" }, { effort: "xhigh" }]);
    const unsigned = [user("x"), assistant([call("a")]), result("a", "r")];
    expect((await body({ thinking_level: "low", messages: unsigned }))["thinking"]).toBeUndefined();
    const replayed = [user("x"), assistant([signed, call("a")]), result("a", "r")];
    expect((await body({ thinking_level: "low", messages: replayed }))["thinking"]).toBeDefined();
  });

  test("cache markers stand on a long prompt, long tools and the end of a long conversation, and only there", async () => {
    const long = "x".repeat(5000);
    const tools = [{ name: "agent_trigger", description: long, parameters: { type: "object" } }];
    const marked = JSON.stringify(await body({ system_prompt: long, tools, messages: [user(long)] }));
    expect(marked.match(/cache_control/g)).toHaveLength(3);
    expect(JSON.stringify(await body({ system_prompt: "short", messages: [user("short")] }))).not.toContain("cache_control");
  });

  test("the key is in its header and nowhere else; the vendor's names are allowed ones", async () => {
    const built = await build({ messages: [user("hi")] });
    expect(built.headers).toMatchObject({ "x-api-key": "k", "anthropic-version": "2023-06-01" });
    expect(JSON.stringify(built.body)).not.toContain('"k"');
  });
});
