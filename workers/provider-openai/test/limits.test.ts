// Limits, retries, costs and overflow, on the Chat Completions wire through the whole kit.
import type { Model } from "@iii/contracts";
import { bytes, type PlayOptions, play, type Reply, requestOf } from "@iii/provider-kit/testing";
import { ManualClock, settle, until } from "@iii/sdk/testing";
import { describe, expect, test } from "vitest";
import { spec } from "../src/register.ts";

const sse = (...list: (object | string)[]) =>
  list.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("");
const delta = (value: object, finish_reason: string | null = null) => ({ choices: [{ index: 0, delta: value, finish_reason }] });
const text = (content: string) => delta({ content });
const end = [delta({}, "stop"), "[DONE]"];
const good: Reply = { chunks: [bytes(sse(text("ok"), ...end))] };
const refused = (status: number, headers: Record<string, string>, error: unknown): Reply => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  chunks: [bytes(JSON.stringify({ error }))],
});
const model: Model = {
  id: "m",
  provider: "openai",
  api: "openai-completions",
  display_name: "m",
  context_window: 1_000,
  pricing: { input_per_1m: 10, output_per_1m: 10 },
};

describe("K3.2 retries are the kit's alone", () => {
  const busy = { message: "slow down", type: "rate_limit_error" };
  test.each<[string, Reply, number, number | undefined]>([
    ["429 that asks for five hours", refused(429, { "retry-after": "18000" }, busy), 1, 18_000_000],
    ["429 that says so in words", refused(429, {}, { message: "Please try again in 5h0m0s.", type: "rate_limit_error" }), 1, 18_000_000],
    ["429 whose details say so", refused(429, {}, { message: "busy", details: [{ retryDelay: "18000s" }] }), 1, 18_000_000],
    ["insufficient_quota", refused(429, {}, { message: "You exceeded your current quota", code: "insufficient_quota" }), 1, undefined],
    ["402", refused(402, {}, { message: "Insufficient Balance" }), 1, undefined],
    ["plain 429", refused(429, {}, busy), 4, undefined],
    ["429 that asks for two seconds", refused(429, { "retry-after": "2" }, busy), 4, 2_000],
    ["503", refused(503, {}, { message: "overloaded" }), 4, undefined],
    ["503 that is not to be tried again", refused(503, { "x-should-retry": "false" }, { message: "overloaded" }), 1, undefined],
    ["400", refused(400, {}, { message: "what?" }), 1, undefined],
  ])("%s", async (_title, reply, requests, wait) => {
    const clock = new ManualClock(0);
    const playing = play(spec, [reply], { clock });
    await clock.advance(100_000);
    const played = await playing;
    expect(played.requests).toHaveLength(requests);
    expect(played.message.retry_after_ms).toBe(wait);
    expect(played.message.error_message).toMatch(new RegExp(`^${reply.status} application/json: .{3}`));
    if (wait !== undefined) expect(played.message.error_message).toContain(`asked to wait ${wait / 1_000} s`);
  });

  test("the pause that was asked for is kept", async () => {
    const clock = new ManualClock(0);
    const playing = play(spec, [refused(429, { "retry-after": "7" }, busy), good], { clock });
    await clock.advance(6_999);
    let ended = false;
    void playing.then(() => {
      ended = true;
    });
    await settle();
    expect(ended).toBe(false);
    await clock.advance(2);
    expect((await playing).message.stop_reason).toBe("end");
  });

  test("the vendor's words are kept to 2 KB", async () => {
    const { message } = await play(spec, [refused(400, {}, { message: "ü".repeat(42_000) })]);
    expect(Buffer.byteLength(message.error_message ?? "")).toBeLessThan(2_300);
  });
});

describe("K2.2", () => {
  test("an answer of 9 MB is an error of that answer, which keeps its beginning", async () => {
    const megabyte = "x".repeat(1_000_000);
    const { message } = await play(spec, [
      { chunks: Array.from({ length: 9 }, () => bytes(sse(text(megabyte)))).concat(bytes(sse(...end))) },
    ]);
    expect(message).toMatchObject({
      stop_reason: "error",
      error_kind: "permanent",
      error_message: expect.stringContaining("larger than 2097152 bytes"),
    });
    expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThan(4_000_000);
  });

  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
  test.each<[string, number, unknown]>([
    ["512 levels", 512, undefined],
    ["513 levels", 513, "512"],
    ["100,000 levels", 100_000, "512"],
  ])("arguments of %s cost at most that call", async (_title, levels, says) => {
    for (const args of [JSON.stringify(nested(levels)), nested(levels)]) {
      const chunk = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":${args}}}]}}]}\n\n`;
      const { message } = await play(spec, [{ chunks: [bytes(chunk + sse(delta({}, "tool_calls"), "[DONE]"))] }]);
      const [call] = message.content;
      expect(message.stop_reason).toBe("function_call");
      if (says === undefined) expect(call).not.toHaveProperty("arguments_error");
      else expect(call).toMatchObject({ arguments: null, arguments_error: expect.stringContaining("512") });
    }
  });

  test("K2.1 arguments with odd keys are data", async () => {
    const args = '{"__proto__":{"x":1},"constructor":2,"a":{"prototype":3}}';
    const { message } = await play(spec, [
      {
        chunks: [
          bytes(sse(delta({ tool_calls: [{ id: "a", function: { name: "f", arguments: args } }] }), delta({}, "tool_calls"), "[DONE]")),
        ],
      },
    ]);
    expect(JSON.stringify(message.content[0])).toContain(`"arguments":${args}`);
  });
});

describe("K3.4 usage", () => {
  test("that was not told is estimated and marked, never zero", async () => {
    for (const zeros of [
      [],
      [{ choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }],
      [{ choices: [], usage: null }],
      [{ choices: [], usage: "n/a" }],
    ]) {
      const { message } = await play(spec, [{ chunks: [bytes(sse(text("twelve chars"), delta({}, "stop"), ...zeros, "[DONE]"))] }], {
        model,
      });
      expect(message.usage).toMatchObject({ output: 3, estimated: true });
      expect(message.usage?.input).toBeGreaterThan(0);
      expect(message.usage?.cost_usd).toBeGreaterThan(0);
    }
  });

  test.each<[string, object[]]>([
    ["without counts", []],
    ["with early counts", [{ choices: [], usage: { prompt_tokens: 40, completion_tokens: 0 } }]],
  ])("case 65 of an answer that is aborted %s is kept, in the message and in the event", async (_title, early) => {
    const abort = new AbortController();
    let deltas = 0;
    async function* body() {
      for (const one of early) yield bytes(sse(one));
      for (let n = 0; n < 10; n += 1) yield bytes(sse(text("ten words ")));
      await new Promise(() => {});
    }
    const send = async (event: { type: string }) => {
      deltas += Number(event.type === "text_delta");
    };
    const options: PlayOptions = {
      model,
      signal: abort.signal,
      sink: { send },
      transport: () => Promise.resolve({ status: 200, headers: {}, body: body() }),
    };
    const playing = play(spec, [], options);
    await until(() => deltas === 10);
    abort.abort();
    const { message } = await playing;
    expect(message).toMatchObject({ stop_reason: "aborted", usage: { output: 25, estimated: true } });
    expect(message.usage?.input).toBe(early.length > 0 ? 40 : message.usage?.input);
    expect(message.usage?.cost_usd).toBeGreaterThan(0);
  });
});

test("K3.5 an answer may flow for twenty minutes; silence ends it", async () => {
  const clock = new ManualClock(0);
  async function* body() {
    for (let n = 0; n < 20; n += 1) {
      await new Promise<void>((resolve) => void clock.setTimer(resolve, 60_000));
      yield bytes(sse(text("x")));
    }
    yield bytes(sse(...end));
  }
  const playing = play(spec, [], { clock, transport: () => Promise.resolve({ status: 200, headers: {}, body: body() }) });
  await clock.advance(1_300_000);
  expect((await playing).message).toMatchObject({ stop_reason: "end", content: [{ text: "x".repeat(20) }] });
});

describe("K14.5 overflow of the window", () => {
  test.each([
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "prompt token count of 130000 exceeds the limit of 128000",
    "Context size has been exceeded.",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "context_overflow",
    "the request exceeds the available context size, try increasing it",
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
    "Input is too long for requested model.",
  ])("case 35 '%s' is said by the kind", async (message) => {
    for (const status of [400, 413, 422]) {
      const played = await play(spec, [refused(status, {}, { message })]);
      expect(played.message.error_kind).toBe("context_overflow");
    }
    const inside = await play(spec, [{ chunks: [bytes(sse({ error: { message } }))] }]);
    expect(inside.message.error_kind).toBe("context_overflow");
  });
  test("case 35 a rate limit counted in tokens is none", async () => {
    const played = await play(spec, [refused(429, {}, { message: "too many tokens per minute: 200000 exceeds the limit" })], {
      config: { max_retries: 0 },
    });
    expect(played.message.error_kind).toBe("rate_limited");
  });
  test("a 200 whose prompt is above the window is one, and runs nothing", async () => {
    const list = [
      delta({ tool_calls: [{ id: "a", function: { name: "f", arguments: "{}" } }] }),
      delta({}, "tool_calls"),
      { choices: [], usage: { prompt_tokens: 1_200, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 400 } } },
    ];
    const { message, events } = await play(spec, [{ chunks: [bytes(sse(...list, "[DONE]"))] }], { model });
    expect(message).toMatchObject({
      stop_reason: "error",
      error_kind: "context_overflow",
      content: [],
      usage: { input: 800, cache_read: 400 },
    });
    expect(events.at(-1)?.type).toBe("error");
  });
});

test.each([
  [
    { code: 403, message: "Your chosen model requires moderation and your input was flagged", metadata: { reasons: ["violence"] } },
    "permanent",
  ],
  [{ message: "Country, region, or territory not supported", code: "unsupported_country_region_territory" }, "permanent"],
  [{ message: "You are not allowed to use this model" }, "auth_expired"],
])("K14.10 403 %j is %s", async (error, kind) => expect((await play(spec, [refused(403, {}, error)])).message.error_kind).toBe(kind));

describe("K2.6 what the server sent goes back in its form", () => {
  const ask = { role: "user" as const, content: [{ type: "text" as const, text: "x" }], timestamp: 1 };
  const call = { id: "a", type: "function", index: 0, function: { name: "f", arguments: "{}" } };
  async function back(part: object, url = spec.endpoint.url) {
    const first = await play(spec, [
      { chunks: [bytes(sse(delta(part), delta({ tool_calls: [call] }), delta({}, "tool_calls"), "[DONE]"))] },
    ]);
    const { body } = await requestOf(spec, { model: "m", messages: [ask, first.message] }, { url });
    return (body["messages"] as Record<string, unknown>[])[1];
  }
  test.each<[string, object, object]>([
    ["reasoning_content", { reasoning_content: "hm" }, { reasoning_content: "hm" }],
    ["reasoning", { reasoning: "hm" }, { reasoning: "hm" }],
    [
      "parts",
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] },
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] },
    ],
    [
      "details",
      { reasoning: "hm", reasoning_details: [{ type: "reasoning.text", text: "hm", signature: "s" }] },
      { reasoning_details: [{ type: "reasoning.text", text: "hm", signature: "s" }] },
    ],
    [
      "encrypted details",
      { reasoning_details: [{ type: "reasoning.encrypted", data: "gAAA", id: "r" }] },
      { reasoning_details: [{ type: "reasoning.encrypted", data: "gAAA", id: "r" }] },
    ],
    [
      "a signature of the message",
      { extra_content: { google: { thought_signature: "c2ln" } } },
      { extra_content: { google: { thought_signature: "c2ln" } } },
    ],
  ])("%s", async (_title, part, expected) => {
    expect(await back(part)).toMatchObject(expected);
    expect(JSON.stringify(await back(part, "https://other.example/v1"))).not.toMatch(/hm|gAAA|c2ln/);
  });
  test("case 56 a signature of the call", async () => {
    const extra_content = { google: { thought_signature: "c2ln" } };
    const part = { tool_calls: [{ ...call, extra_content }] };
    expect(await back(part)).toMatchObject({ tool_calls: [{ id: "a", extra_content }] });
    expect(JSON.stringify(await back(part, "https://other.example/v1"))).not.toContain("c2ln");
  });
});
