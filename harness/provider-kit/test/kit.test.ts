// What the kit promises for every provider, shown with the smallest possible one.
import type { AssistantMessage, AssistantMessageEvent } from "@iii/contracts";
import { systemClock } from "@iii/sdk";
import { ManualClock, settle, until } from "@iii/sdk/testing";
import { describe, expect, test } from "vitest";
import { fetchTransport } from "../src/exchange/http.ts";
import {
  COMMON_IMAGES,
  classifyHttp,
  defineProvider,
  type FoldEvent,
  ProviderSettings,
  type ProviderSpec,
  record,
  shown,
} from "../src/index.ts";
import { bytes, conformance, loopback, play, type Reply, sseHead } from "../src/testing/index.ts";

const spec: ProviderSpec<null, ProviderSettings> = {
  name: "tiny",
  config: ProviderSettings,
  begin: () => null,
  fold: (state, { value }) => [state, eventsIn(value)],
  words: { end: "end" },
  request: (request, { url, credential }) => ({ url, headers: {}, body: { request, credential } }),
  classify: (status, _headers, body) => classifyHttp(status, body),
  takes: { images: COMMON_IMAGES, max_image_bytes: 1_000, images_in_results: true, signed_only: () => false },
  models: [],
  endpoint: { url: "http://tiny.invalid/" },
};
/** Its wire is the kit's own vocabulary; an end word closes the stream. */
function eventsIn(value: unknown): FoldEvent[] {
  const events = record(value)?.["events"];
  if (!Array.isArray(events)) return [{ type: "unknown", what: shown(value) }];
  return (events as FoldEvent[]).flatMap((event): FoldEvent[] => (event.type === "end" ? [event, { type: "closing" }] : [event]));
}
const line = (...events: FoldEvent[]) => `data: ${JSON.stringify({ events })}\n\n`;
const text = (delta: string, block = 0): FoldEvent => ({ type: "text", block, delta });
const end: FoldEvent = { type: "end", word: "end" };
const reply = (...parts: string[]): Reply => ({ chunks: parts.map(bytes) });

conformance(spec, [
  { title: "text", sse: line(text("Hallo 你好 ")) + line(text("🌍 é")) + line(end) },
  {
    title: "thinking and two calls",
    sse:
      line({ type: "thinking", block: "t", delta: "hm" }, { type: "signature", block: "t", delta: "sig" }) +
      line({ type: "call", block: 1, id: "a", name: "x__y", delta: '{"p":' }, { type: "call", block: 2, id: "b", name: "x__z" }) +
      line({ type: "call", block: 2, delta: '{"q":2}' }, { type: "call", block: 1, delta: '"🔥"}' }) +
      line(end),
  },
]);

describe("events", () => {
  test("calls decide the stop reason, names are decoded, blocks keep the order of appearance", async () => {
    const { message, events } = await play(spec, [
      reply(line({ type: "call", block: 9, id: "a", name: "shell__fs__ls", delta: "{}" }, text("after", 3), end)),
    ]);
    expect(message.stop_reason).toBe("function_call");
    expect(message.content).toEqual([
      { type: "function_call", id: "a", function_id: "shell::fs::ls", arguments: {} },
      { type: "text", text: "after" },
    ]);
    expect(events.map((event) => event.type)).toEqual([
      "start",
      "functioncall_start",
      "functioncall_delta",
      "text_start",
      "text_delta",
      "functioncall_end",
      "text_end",
      "usage",
      "stop",
      "done",
    ]);
  });

  test.each([
    ["cut path", '{"path":"/a'],
    ["trailing comma", '{"a":1,}'],
    ["two objects", '{"a":1}{"b":2}'],
  ])("arguments that are not JSON are kept as text and never guessed: %s", async (_title, delta) => {
    const { message } = await play(spec, [reply(line({ type: "call", block: 0, id: "a", name: "f", delta }, end))]);
    expect(message.content).toEqual([{ type: "function_call", id: "a", function_id: "f", arguments: null, arguments_text: delta }]);
  });

  test("ids that repeat, are unusable or are missing become unique ones, the same on every run", async () => {
    const messages = [
      { role: "user" as const, content: [], timestamp: 1 },
      {
        role: "assistant" as const,
        content: [{ type: "function_call" as const, id: "search:0", function_id: "f", arguments: {} }],
        stop_reason: "function_call" as const,
        model: "m",
        provider: "tiny",
        timestamp: 2,
      },
    ];
    const calls = ["search:0", "a/b", "same", "same", undefined].map(
      (id, block): FoldEvent => ({ type: "call", block, id, name: "f", delta: "{}" }),
    );
    const run = () => play(spec, [reply(line(...calls, end))], { request: { model: "m", messages } });
    const [first, second] = [await run(), await run()];
    const ids = first.message.content.map((block) => (block.type === "function_call" ? block.id : ""));
    expect(new Set([...ids, "search:0"]).size).toBe(6);
    expect(ids[2]).toBe("same");
    expect(second.message.content).toEqual(first.message.content);
    expect(first.events.filter((event) => event.type === "functioncall_start").map((event) => event.id)).toEqual(ids);
  });

  test("a surrogate pair split over two deltas arrives whole, a lone half as a replacement", async () => {
    const { message, events } = await play(spec, [reply(line(text("a\ud83d")) + line(text("\udd25b\udd25")) + line(text("\ud83d"), end))]);
    expect(message.content).toEqual([{ type: "text", text: "a🔥b\ufffd\ufffd" }]);
    expect(events.flatMap((event) => (event.type === "text_delta" ? [event.delta] : [])).every((delta) => delta.isWellFormed())).toBe(true);
  });

  test("usage is replaced, priced once per class, and told before the end", async () => {
    const pricing = { input_per_1m: 3, output_per_1m: 15, cache_read_per_1m: 0.3, cache_write_per_1m: 3.75 };
    const model = { id: "m", provider: "tiny", api: "x", display_name: "m", context_window: 100_000, pricing };
    const { message } = await play(
      spec,
      [
        reply(
          line({ type: "usage", usage: { input: 500, output: 1, cache_read: 1500, cache_write: 300 } }, text("x")) +
            line({ type: "usage", usage: { output: 10 } }, { type: "usage", usage: { output: 20 } }, end),
        ),
      ],
      { model },
    );
    expect(message.usage).toEqual({ input: 500, output: 20, cache_read: 1500, cache_write: 300, cost_usd: 0.003375 });
  });
});

describe("failures", () => {
  test("a fault before the first output is tried again, and the vendor's pause is kept", async () => {
    const clock = new ManualClock(0);
    const playing = play(spec, [{ status: 429, headers: { "retry-after": "7" } }, { status: 529 }, reply(line(text("ok"), end))], {
      clock,
    });
    await clock.advance(6_999);
    let settled = false;
    void playing.then(() => {
      settled = true;
    });
    await clock.advance(2);
    await clock.advance(2_000);
    const played = await playing;
    expect(settled).toBe(true);
    expect(played.attempts).toBe(3);
    expect(played.message.content).toEqual([{ type: "text", text: "ok" }]);
    expect(played.events.filter((event) => event.type === "start")).toHaveLength(1);
  });

  test.each<[string, Reply, string]>([
    ["a key that is refused", { status: 401, chunks: [bytes("bad key sk-secret-0123456789")] }, "auth_expired"],
    [
      "a prompt that is too long",
      { status: 400, chunks: [bytes("prompt is too long: 213462 tokens > 200000 maximum")] },
      "context_overflow",
    ],
    ["a wrong request", { status: 400, chunks: [bytes("what?")] }, "permanent"],
  ])("%s is not tried again", async (_title, given, kind) => {
    const { message, attempts } = await play(spec, [given], { credential: { type: "api_key", key: "sk-secret-0123456789" } });
    expect([message.stop_reason, message.error_kind, attempts]).toEqual(["error", kind, 1]);
    expect(JSON.stringify(message)).not.toContain("sk-secret");
  });

  test("a fault after output is not tried again and what came is kept, without calls", async () => {
    const parts = line(text("so far"), { type: "call", block: 1, id: "a", name: "f", delta: '{"x":1}' });
    const { message, attempts } = await play(spec, [{ chunks: [bytes(parts)], lost: "socket hang up" }]);
    expect(attempts).toBe(1);
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient", content: [{ type: "text", text: "so far" }] });
    expect(message.usage?.estimated).toBe(true);
    expect(message.usage?.output).toBeGreaterThan(0);
  });

  test("an answer without end is ended before it fills the memory", async () => {
    const megabyte = `: ${"x".repeat(1_048_574)}\n`;
    const { message, requests } = await play(spec, [reply(line(text("Hi")), ...Array.from({ length: 65 }, () => megabyte), line(end))]);
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient", content: [{ type: "text", text: "Hi" }] });
    expect(requests).toHaveLength(1);
  });

  test("a pause longer than allowed fails at once", async () => {
    const { message, attempts } = await play(spec, [{ status: 429, headers: { "retry-after": "3600" } }]);
    expect([message.error_kind, attempts]).toEqual(["rate_limited", 1]);
  });
});

describe("time and abort", () => {
  test("a server that keeps an ended answer open is hung up on", async () => {
    await using server = await loopback((response) => {
      response.writeHead(200, sseHead);
      response.write(line(text("all"), end));
    });
    const here = { ...spec, endpoint: { url: server.url } };
    const { message } = await play(here, [], { clock: systemClock, transport: fetchTransport() });
    expect(message).toMatchObject({ stop_reason: "end", content: [{ type: "text", text: "all" }] });
    await server.hungUp;
  });

  /** A server that sends what is pushed, when it is pushed. */
  function live() {
    let wake = () => {};
    const queue: Uint8Array[] = [];
    const state = { closed: false };
    async function* body(): AsyncGenerator<Uint8Array> {
      for (;;) {
        const next = queue.shift();
        if (next !== undefined) yield next;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    }
    const push = (part: string) => {
      queue.push(bytes(part));
      wake();
    };
    const transport = (_request: unknown, signal: AbortSignal) => {
      signal.addEventListener("abort", () => {
        state.closed = true;
      });
      return Promise.resolve({ status: 200, headers: { "content-type": "text/event-stream" }, body: body() });
    };
    return { push, transport, state };
  }

  test("silence ends the call, keep-alive comments count as life", async () => {
    const clock = new ManualClock(0);
    const server = live();
    const playing = play(spec, [], { clock, transport: server.transport, config: { idle_timeout_ms: 10_000, max_retries: 0 } });
    for (let i = 0; i < 6; i += 1) {
      await clock.advance(5_000);
      server.push(": ping\n\n");
      await settle();
    }
    server.push(line(text("alive")));
    await clock.advance(9_999);
    expect(server.state.closed).toBe(false);
    await clock.advance(2);
    const { message } = await playing;
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient", content: [{ type: "text", text: "alive" }] });
    expect(server.state.closed).toBe(true);
  });

  test("abort closes the upstream request and ends with one aborted message that still counts its tokens", async () => {
    const server = live();
    const abort = new AbortController();
    const events: AssistantMessageEvent[] = [];
    const sink = { send: async (event: AssistantMessageEvent) => void events.push(event) };
    const playing = play(spec, [], { transport: server.transport, signal: abort.signal, sink });
    server.push(line(text("ten deltas of text")));
    await until(() => events.some((event) => event.type === "text_delta"));
    abort.abort();
    const { message } = await playing;
    expect(server.state.closed).toBe(true);
    expect(message.stop_reason).toBe("aborted");
    expect(message.usage).toMatchObject({ estimated: true });
    expect(events.filter((event) => event.type === "error" || event.type === "done")).toHaveLength(1);
  });

  test("a slow reader holds the stream back without being taken for silence", async () => {
    const clock = new ManualClock(0);
    const release = Promise.withResolvers<void>();
    const seen: string[] = [];
    const send = async (event: AssistantMessageEvent) => {
      seen.push(event.type);
      if (event.type === "text_delta") await release.promise;
    };
    const playing = play(spec, [reply(line(text("a")), line(text("b")), line(end))], {
      clock,
      sink: { send },
      config: { idle_timeout_ms: 100 },
    });
    await clock.advance(1_000);
    expect(seen.filter((type) => type === "text_delta")).toHaveLength(1);
    release.resolve();
    expect((await playing).message.stop_reason).toBe("end");
  });

  test("a reader that is gone ends the request; nothing is thrown", async () => {
    const gone = new AbortController();
    const send = () => {
      gone.abort();
      return Promise.reject(new Error("channel_closed"));
    };
    const { message } = await play(spec, [reply(line(text("a")), line(end))], { sink: { send, signal: gone.signal } });
    const expected: AssistantMessage["stop_reason"] = "aborted";
    expect(message.stop_reason).toBe(expected);
  });
});

test("a provider is a worker named after it", () => {
  expect(defineProvider(spec).name).toBe("provider-tiny");
});
