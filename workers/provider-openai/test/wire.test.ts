// The Chat Completions wire: recorded-style streams through the whole kit, and what gateways leave out or repeat.
import { readFileSync } from "node:fs";
import type { AgentMessage } from "@iii/contracts";
import { bytes, conformance, play, requestOf } from "@iii/provider-kit/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { models } from "../src/models.ts";
import { spec } from "../src/register.ts";

const fixture = (name: string) => readFileSync(new URL(`./fixtures/${name}.sse`, import.meta.url), "utf8");
const chunks = (...list: (object | string)[]) =>
  list.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("");
const delta = (value: object, finish_reason: string | null = null) => ({ choices: [{ index: 0, delta: value, finish_reason }] });
const finish = (reason: string) => delta({}, reason);
const run = (sse: string, options: Parameters<typeof play>[2] = {}) =>
  play(spec, [{ chunks: [bytes(sse)] }], { ...options, config: { max_retries: 0 } });

conformance(spec, [
  { title: "reasoning and text", sse: fixture("text") },
  { title: "two calls", sse: fixture("tools") },
]);

test("cached tokens are taken out of the prompt and each class is priced once", async () => {
  const model = models.find((one) => one.id === "gpt-5");
  const { message, events } = await run(fixture("text"), model === undefined ? {} : { model });
  expect(message.content).toEqual([
    { type: "thinking", text: "Let me see." },
    { type: "text", text: "Grüße, 你好 🌍" },
  ]);
  expect(message.usage).toEqual({
    input: 500,
    output: 9,
    cache_read: 1500,
    cost_usd: Math.round(((500 * 1.25 + 90 + 1500 * 0.125) / 1e6) * 1e9) / 1e9,
  });
  const types = events.map((event) => event.type);
  expect(types.indexOf("thinking_end")).toBeLessThan(types.indexOf("text_start"));
});

test("A11 any split of the bytes gives the same events", async () => {
  const all = bytes(fixture("text"));
  const whole = await run(fixture("text"));
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.nat(all.length), { maxLength: 12 }), async (cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), all.length];
      const parts = edges.slice(1).map((edge, i) => all.subarray(edges[i], edge));
      expect((await play(spec, [{ chunks: parts }])).events).toEqual(whole.events);
    }),
    { numRuns: 100 },
  );
});

describe("calls", () => {
  const part = (id: string | undefined, index: number | undefined, args: string, name?: string) =>
    delta({
      tool_calls: [
        {
          ...(id === undefined ? {} : { id }),
          ...(index === undefined ? {} : { index }),
          function: { ...(name === undefined ? {} : { name }), arguments: args },
        },
      ],
    });
  const callsOf = async (...parts: object[]) => {
    const { message } = await run(chunks(...parts, finish("tool_calls"), "[DONE]"));
    return message.content.map((block) => (block.type === "function_call" ? [block.id, block.function_id, block.arguments] : block));
  };
  const two = [
    ["a", "f", { x: 1 }],
    ["b", "g", { y: 2 }],
  ];

  test.each([
    ["no index", [part("a", undefined, "{", "f"), part("a", undefined, '"x":1}'), part("b", undefined, '{"y":2}', "g")]],
    ["all index 0", [part("a", 0, "{", "f"), part(undefined, 0, '"x":1}'), part("b", 0, '{"y":2}', "g")]],
    ["interleaved", [part("a", 0, '{"x"', "f"), part("b", 1, '{"y"', "g"), part(undefined, 0, ":1}"), part(undefined, 1, ":2}")]],
    ["rest without id and index", [part("a", 0, "{", "f"), part(undefined, undefined, '"x":1}'), part("b", 1, '{"y":2}', "g")]],
  ])("are told apart with %s", async (_title, parts) => expect(await callsOf(...parts)).toEqual(two));

  test("two calls with one id are two calls with two ids", async () => {
    const [first, second] = await callsOf(part("x", 0, "{}", "f"), part("x", 1, "{}", "f"));
    expect(first).toEqual(["x", "f", {}]);
    expect(second).toEqual([expect.stringMatching(/^call_/), "f", {}]);
  });
});

describe("endings", () => {
  const text = delta({ content: "hi" });
  const full = delta({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] });

  test.each<[string, (object | string)[], string, string | undefined]>([
    ["finish reason without closing line", [text, finish("stop")], "end", undefined],
    ["closing line without finish reason: no end word", [text, "[DONE]"], "error", "transient"],
    ["neither", [text], "error", "transient"],
    ["nothing at all", ["[DONE]"], "error", "transient"],
    ["calls finished as stop", [full, finish("stop"), "[DONE]"], "function_call", undefined],
    ["length with a whole call", [full, finish("length"), "[DONE]"], "length", undefined],
    ["content filter", [text, finish("content_filter"), "[DONE]"], "error", "permanent"],
    ["an error chunk", [text, { error: { message: "boom", type: "server_error" } }], "error", "transient"],
    ["an error as text", [{ error: "overloaded" }], "error", "transient"],
  ])("%s", async (_title, list, stop, kind) => {
    const { message } = await run(chunks(...list));
    expect([message.stop_reason, message.error_kind]).toEqual([stop, kind]);
  });

  test.each<[string, object[]]>([
    ["empty choices", [{ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }]],
    ["no choices", [{ usage: { prompt_tokens: 3, completion_tokens: 4 } }]],
    ["twice", [{ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }, { usage: { prompt_tokens: 3, completion_tokens: 4 } }]],
  ])("usage with %s is counted once", async (_title, usage) => {
    const { message } = await run(chunks(text, finish("stop"), ...usage, "[DONE]"));
    expect(message.usage).toEqual({ input: 3, output: 4 });
  });
});

test.each([
  [401, { message: "Incorrect API key provided: sk-abc", code: "invalid_api_key" }, "auth_expired"],
  [429, { message: "Rate limit reached", code: "rate_limit_exceeded" }, "rate_limited"],
  [429, { message: "You exceeded your current quota", code: "insufficient_quota" }, "rate_limited"],
  [400, { message: "too long", code: "context_length_exceeded" }, "context_overflow"],
  [404, { message: "The model `gpt-0` does not exist", code: "model_not_found" }, "permanent"],
  [503, { message: "overloaded" }, "transient"],
])("%i %j is %s", (status, error, kind) => {
  const failure = spec.classify(status, {}, JSON.stringify({ error }));
  expect(failure.kind).toBe(kind);
  if (JSON.stringify(error).includes("insufficient_quota")) expect(failure.retry).toBe(false);
});

test("a conversation becomes this wire's messages, each call answered once", async () => {
  const messages: AgentMessage[] = [
    {
      role: "user",
      content: [
        { type: "text", text: "look" },
        { type: "image", mime: "image/png", data: "AA" },
      ],
      timestamp: 1,
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", text: "hm" },
        { type: "function_call", id: "a", function_id: "x::y", arguments: { q: 1 } },
        { type: "function_call", id: "b", function_id: "x::y", arguments: null, arguments_text: "{oops" },
      ],
      stop_reason: "function_call",
      model: "m",
      provider: "openai",
      timestamp: 2,
    },
    {
      role: "function_result",
      function_call_id: "a",
      function_id: "x::y",
      content: [{ type: "text", text: "r" }],
      details: null,
      is_error: false,
      timestamp: 3,
    },
  ];
  const [model] = models;
  const built = await requestOf(
    spec,
    { model: "gpt-5", system_prompt: "be kind", messages, thinking_level: "low" },
    { credential: { type: "api_key", key: "k" }, ...(model === undefined ? {} : { model }) },
  );
  expect(built.headers).toEqual({ authorization: "Bearer k" });
  expect(built.body).toMatchObject({
    model: "gpt-5",
    max_completion_tokens: 8192,
    reasoning_effort: "low",
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: "system", content: "be kind" },
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "a", type: "function", function: { name: "x__y", arguments: '{"q":1}' } },
          { id: "b", type: "function", function: { name: "x__y", arguments: '{"unparsed_arguments":"{oops"}' } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "r" },
      { role: "tool", tool_call_id: "b", content: expect.stringContaining("no recorded result") },
    ],
  });
});
