// OpenAI's provider against a third party's model server in its own process, over real HTTP, on the real bus.
// Cache tokens, an error in mid-stream and a request that stays open are beyond aimock: a loopback server of this test plays those.
import { testBus } from "@iii/engine/testing";
import { aimock, ask, credentials, loopback, type ModelServer, sseHead } from "@iii/provider-kit/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { worker } from "../src/register.ts";

const KEY = "sk-proj-test-0123456789abcdef";
const model = "gpt-5";
const user = (text: string) => [{ role: "user" as const, content: [{ type: "text" as const, text }], timestamp: 1 }];
const boot = (base: string, config: object = {}) =>
  testBus([credentials(KEY), { worker, config: { api_url: `${base}/v1/chat/completions`, ...config } }]);
const tools = [{ name: "agent_trigger", description: "Call a function.", parameters: { type: "object" } }];

describe("aimock", () => {
  let server: ModelServer;
  beforeAll(async () => {
    const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
    server = await aimock([
      { match: { userMessage: "plain" }, response: { content: "Grüße 你好 🌍", usage } },
      { match: { userMessage: "think" }, response: { content: "Done.", reasoning: "Let me see." } },
      {
        match: { userMessage: "one call" },
        response: { toolCalls: [{ id: "call_1", name: "agent_trigger", arguments: { function: "a::b", payload: { x: 1 } } }] },
      },
      {
        match: { userMessage: "two calls" },
        response: {
          content: "Both.",
          toolCalls: [
            { id: "call_1", name: "agent_trigger", arguments: { function: "a::b" } },
            { id: "call_2", name: "agent_trigger", arguments: { function: "c::d" } },
          ],
        },
      },
      {
        match: { userMessage: "busy", sequenceIndex: 0 },
        response: { error: { message: "slow down", type: "rate_limit_exceeded" }, status: 429, retryAfter: 3 },
      },
      {
        match: { userMessage: "busy", sequenceIndex: 1 },
        response: { error: { message: "overloaded", type: "server_error" }, status: 529 },
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
        response: { error: { message: `Incorrect API key provided: ${KEY}`, type: "invalid_request_error" }, status: 401 },
      },
    ]);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  const run = async (text: string) => {
    await using bus = await boot(server.url);
    return await ask(bus, "openai", { model, messages: user(text), tools });
  };

  test("A11 text streams and ends with usage and price", async () => {
    const { last, answer } = await run("plain");
    const cost_usd = Math.round(((11 * 1.25 + 7 * 10) / 1e6) * 1e9) / 1e9;
    expect(last).toMatchObject({
      type: "done",
      message: { content: [{ type: "text", text: "Grüße 你好 🌍" }], stop_reason: "end", usage: { input: 11, output: 7, cost_usd } },
    });
    expect(answer).toEqual({ ok: true, status: "end" });
  });

  test("reasoning comes as thinking", async () => {
    const { last } = await run("think");
    expect(last).toMatchObject({
      message: {
        content: [
          { type: "thinking", text: "Let me see." },
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
          { type: "function_call", id: "call_1", function_id: "agent_trigger", arguments: { function: "a::b", payload: { x: 1 } } },
        ],
      },
    });
    const two = await run("two calls");
    expect(two.last).toMatchObject({
      message: {
        content: [{ text: "Both." }, { id: "call_1", arguments: { function: "a::b" } }, { id: "call_2", arguments: { function: "c::d" } }],
      },
    });
  });

  test("429 with Retry-After and 529 are waited out before anything is told", async () => {
    await using bus = await boot(server.url);
    const before = bus.clock.now();
    const { events, last } = await ask(bus, "openai", { model, messages: user("busy") });
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
  const line = (chunk: object) => `data: ${JSON.stringify(chunk)}\n\n`;
  const text = line({ choices: [{ index: 0, delta: { content: "so far" }, finish_reason: null }] });

  test("cached tokens are part of the prompt on this wire and counted once", async () => {
    await using server = await loopback((response) => {
      const usage = { prompt_tokens: 2000, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 1500 } };
      const finish = line({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
      response.writeHead(200, sseHead).end(`${text}${finish}${line({ choices: [], usage })}data: [DONE]\n\n`);
    });
    await using bus = await boot(server.url);
    const { last } = await ask(bus, "openai", { model, messages: user("x") });
    const cost_usd = Math.round(((500 * 1.25 + 7 * 10 + 1500 * 0.125) / 1e6) * 1e9) / 1e9;
    expect(last).toMatchObject({ message: { usage: { input: 500, output: 7, cache_read: 1500, cost_usd } } });
  });

  test("an error in mid-stream ends the answer with what came", async () => {
    await using server = await loopback((response) =>
      response.writeHead(200, sseHead).end(text + line({ error: { message: "boom", type: "server_error" } })),
    );
    await using bus = await boot(server.url);
    const { last } = await ask(bus, "openai", { model, messages: user("x") });
    expect(last).toMatchObject({ type: "error", error: { error_kind: "transient", content: [{ type: "text", text: "so far" }] } });
  });

  test("an abort closes the upstream request before the stream ends", async () => {
    await using server = await loopback((response) => response.writeHead(200, sseHead).write(text));
    await using bus = await boot(server.url);
    const abort = new AbortController();
    const onEvent = (event: { type: string }) => event.type === "text_delta" && abort.abort();
    const { last } = await ask(bus, "openai", { model, messages: user("x") }, { signal: abort.signal, onEvent });
    expect(last).toMatchObject({ type: "error", error: { stop_reason: "aborted", content: [{ text: "so far" }] } });
    await server.hungUp;
  });

  test("an answer in JSON where a stream was asked for is a refusal, not an empty answer", async () => {
    const body = JSON.stringify({ error: { message: "no such model", code: "model_not_found", type: "invalid_request_error" } });
    await using server = await loopback((response) => response.writeHead(200, { "content-type": "application/json" }).end(body));
    await using bus = await boot(server.url);
    const { last } = await ask(bus, "openai", { model, messages: user("x") });
    expect(last).toMatchObject({
      type: "error",
      error: { error_kind: "permanent", error_message: expect.stringContaining("no such model") },
    });
  });

  test("one connection serves several answers", async () => {
    const ports = new Set<number | undefined>();
    await using server = await loopback((response) => {
      ports.add(response.socket?.remotePort);
      response.writeHead(200, sseHead).end(`${text}${line({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}data: [DONE]\n\n`);
    });
    await using bus = await boot(server.url);
    for (let i = 0; i < 3; i += 1) expect((await ask(bus, "openai", { model, messages: user("x") })).last?.type).toBe("done");
    expect(ports.size).toBe(1);
  });
});
