// Anthropic's provider against a third party's model server in its own process, over real HTTP, on the real bus.
// Cache tokens, an error in mid-stream and a request that stays open are beyond aimock: a loopback server of this test plays those.
import { testBus } from "@iii/engine/testing";
import { aimock, ask, credentials, loopback, type ModelServer, sseHead } from "@iii/provider-kit/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { worker } from "../src/register.ts";

const KEY = "sk-ant-test-0123456789abcdef";
const model = "claude-haiku-4-5";
const user = (text: string) => [{ role: "user" as const, content: [{ type: "text" as const, text }], timestamp: 1 }];
const boot = (base: string, config: object = {}, key: string | undefined = KEY) =>
  testBus([credentials(key), { worker, config: { api_url: `${base}/v1/messages`, ...config } }]);
const tools = [{ name: "agent_trigger", description: "Call a function.", parameters: { type: "object" } }];

describe("aimock", () => {
  let server: ModelServer;
  beforeAll(async () => {
    server = await aimock([
      { match: { userMessage: "plain" }, response: { content: "Grüße 你好 🌍", usage: { input_tokens: 11, output_tokens: 7 } } },
      { match: { userMessage: "think" }, response: { content: "Done.", reasoning: "Let me see.", reasoningSignature: "c2ln" } },
      {
        match: { userMessage: "one call" },
        response: { toolCalls: [{ id: "toolu_1", name: "agent_trigger", arguments: { function: "a::b", payload: { x: 1 } } }] },
      },
      {
        match: { userMessage: "two calls" },
        response: {
          content: "Both.",
          toolCalls: [
            { id: "toolu_1", name: "agent_trigger", arguments: { function: "a::b" } },
            { id: "toolu_2", name: "agent_trigger", arguments: { function: "c::d" } },
          ],
        },
      },
      {
        match: { userMessage: "busy", sequenceIndex: 0 },
        response: { error: { message: "slow down", type: "rate_limit_error" }, status: 429, retryAfter: 3 },
      },
      {
        match: { userMessage: "busy", sequenceIndex: 1 },
        response: { error: { message: "overloaded", type: "overloaded_error" }, status: 529 },
      },
      { match: { userMessage: "busy" }, response: { content: "at last" } },
      {
        match: { userMessage: "cut" },
        response: { content: "a long answer that is cut off before its end" },
        chunkSize: 4,
        latency: 20,
        truncateAfterChunks: 5,
      },
      {
        match: { userMessage: "wrong key" },
        response: { error: { message: `invalid x-api-key ${KEY}`, type: "authentication_error" }, status: 401 },
      },
    ]);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  const run = async (text: string) => {
    await using bus = await boot(server.url);
    return await ask(bus, "anthropic", { model, messages: user(text), tools });
  };

  test("A11 text streams and ends with usage and price", async () => {
    const { last, events, answer } = await run("plain");
    expect(events[0]).toEqual({ type: "start" });
    const cost_usd = (11 * 1 + 7 * 5) / 1e6;
    expect(last).toMatchObject({
      type: "done",
      message: { content: [{ type: "text", text: "Grüße 你好 🌍" }], stop_reason: "end", usage: { input: 11, output: 7, cost_usd } },
    });
    expect(answer).toEqual({ ok: true, status: "end" });
  });

  test("thinking comes with its signature", async () => {
    const { last } = await run("think");
    expect(last).toMatchObject({
      message: {
        content: [
          { type: "thinking", text: "Let me see.", signature: "c2ln" },
          { type: "text", text: "Done." },
        ],
      },
    });
  });

  test("one call and two calls", async () => {
    const one = await run("one call");
    expect(one.last).toMatchObject({
      message: {
        stop_reason: "function_call",
        content: [
          { type: "function_call", id: "toolu_1", function_id: "agent_trigger", arguments: { function: "a::b", payload: { x: 1 } } },
        ],
      },
    });
    const two = await run("two calls");
    expect(two.last).toMatchObject({
      message: {
        content: [
          { text: "Both." },
          { id: "toolu_1", arguments: { function: "a::b" } },
          { id: "toolu_2", arguments: { function: "c::d" } },
        ],
      },
    });
  });

  test("429 with Retry-After and 529 are waited out before anything is told", async () => {
    await using bus = await boot(server.url);
    const before = bus.clock.now();
    const { events, last } = await ask(bus, "anthropic", { model, messages: user("busy") });
    expect(last).toMatchObject({ type: "done", message: { content: [{ text: "at last" }] } });
    expect(events.filter((event) => event.type === "start")).toHaveLength(1);
    expect(bus.clock.now() - before).toBeGreaterThanOrEqual(3_000);
  });

  test("a cut stream is an error, never an answer", async () => {
    const { last } = await run("cut");
    expect(last).toMatchObject({ type: "error", error: { stop_reason: "error", error_kind: "transient", usage: { estimated: true } } });
  });

  test("a refused key says so without saying the key", async () => {
    const { last } = await run("wrong key");
    expect(last).toMatchObject({ type: "error", error: { error_kind: "auth_expired" } });
    expect(JSON.stringify(last)).not.toContain(KEY);
  });
});

describe("a loopback server", () => {
  const line = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  const start = line(
    Object.assign(
      { type: "message_start" },
      { message: { usage: { input_tokens: 500, cache_read_input_tokens: 1500, cache_creation_input_tokens: 300, output_tokens: 1 } } },
    ),
  );
  const text = line(Object.assign({ type: "content_block_delta" }, { index: 0, delta: { type: "text_delta", text: "so far" } }));

  test("cache tokens are counted once each", async () => {
    await using server = await loopback((response) => {
      const end = line(Object.assign({ type: "message_delta" }, { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 20 } }));
      response.writeHead(200, sseHead).end(start + text + end + line({ type: "message_stop" }));
    });
    await using bus = await boot(server.url);
    const { last } = await ask(bus, "anthropic", { model, messages: user("x") });
    const cost_usd = (500 * 1 + 20 * 5 + 1500 * 0.1 + 300 * 1.25) / 1e6;
    expect(last).toMatchObject({ message: { usage: { input: 500, output: 20, cache_read: 1500, cache_write: 300, cost_usd } } });
  });

  test("an error in mid-stream ends the answer with what came", async () => {
    await using server = await loopback((response) => {
      const error = line(Object.assign({ type: "error" }, { error: { type: "overloaded_error", message: "Overloaded" } }));
      response.writeHead(200, sseHead).end(start + text + error);
    });
    await using bus = await boot(server.url);
    const { last } = await ask(bus, "anthropic", { model, messages: user("x") });
    expect(last).toMatchObject({ type: "error", error: { error_kind: "transient", content: [{ type: "text", text: "so far" }] } });
    expect(server.bodies).toHaveLength(1);
  });

  test("an abort closes the upstream request before the stream ends", async () => {
    await using server = await loopback((response) => response.writeHead(200, sseHead).write(start + text));
    await using bus = await boot(server.url);
    const abort = new AbortController();
    const { last } = await ask(
      bus,
      "anthropic",
      { model, messages: user("x") },
      {
        signal: abort.signal,
        onEvent: (event) => event.type === "text_delta" && abort.abort(),
      },
    );
    expect(last).toMatchObject({
      type: "error",
      error: { stop_reason: "aborted", content: [{ text: "so far" }], usage: { estimated: true } },
    });
    await server.hungUp;
  });

  test("silence ends the request after the idle time", async () => {
    await using server = await loopback((response) => response.writeHead(200, sseHead).write(start + text));
    await using bus = await boot(server.url, { idle_timeout_ms: 5_000 });
    const { last } = await ask(bus, "anthropic", { model, messages: user("x") });
    expect(last).toMatchObject({ type: "error", error: { error_kind: "transient", error_message: expect.stringContaining("5000 ms") } });
    await server.hungUp;
  });

  test("a redirect is not followed: it would carry the key elsewhere", async () => {
    await using other = await loopback((response) => response.end());
    await using server = await loopback((response) => response.writeHead(307, { location: `${other.url}/v1/messages` }).end());
    await using bus = await boot(server.url);
    expect((await ask(bus, "anthropic", { model, messages: user("x") })).last).toMatchObject({ type: "error" });
    expect(other.bodies).toHaveLength(0);
  });
});

test("without a credential the answer says which one to set, and nothing is sent", async () => {
  await using server = await loopback((response) => response.end());
  await using bus = await testBus([credentials(), { worker, config: { api_url: `${server.url}/v1/messages` } }]);
  const { last } = await ask(bus, "anthropic", { model, messages: user("x") });
  expect(last).toMatchObject({
    type: "error",
    error: {
      error_kind: "auth_expired",
      error_message: expect.stringMatching(/^credential_missing: .*ANTHROPIC_API_KEY.*auth::set_token/),
    },
  });
  expect(server.bodies).toHaveLength(0);
});

test("a server that is not there is an error that names the place only", async () => {
  await using bus = await boot("http://127.0.0.1:9", { max_retries: 1 });
  const { last } = await ask(bus, "anthropic", { model, messages: user("x") });
  expect(last).toMatchObject({
    type: "error",
    error: { error_kind: "transient", error_message: expect.stringContaining("could not reach http://127.0.0.1:9") },
  });
});
