// How a request is answered, without sockets: by a value, by the response channel, or by time.
import { connect, type Iii, silentLogger } from "@iii/sdk";
import { ManualClock, seededRandom, settle } from "@iii/sdk/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { BodySink, HttpFront, HttpRequest, HttpResponse } from "../../src/builtin/http/port.ts";
import { httpBuiltin } from "../../src/builtin/http/register.ts";
import { defaultBuiltins } from "../../src/builtins.ts";
import { defaultEngineConfig } from "../../src/config.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import { createMemoryStore, linkedDialer } from "../../src/testing/index.ts";

const KB64 = 65_536;
type Writer = ReturnType<Iii["openWriter"]>;
type Reader = ReturnType<Iii["openReader"]>;
interface Refs {
  readonly response: Parameters<Iii["openWriter"]>[0];
  readonly request_body: Parameters<Iii["openReader"]>[0];
}

let clock: ManualClock;
let engine: Engine;
let front: HttpFront;
let iii: Iii;
beforeEach(async () => {
  clock = new ManualClock();
  const config = defaultEngineConfig({ store: "memory" });
  const http = httpBuiltin({ timeout_ms: 1_000, grace_ms: 100 });
  const deps = { clock, random: seededRandom(1), store: createMemoryStore(), log: silentLogger };
  engine = createEngine({ config, deps, builtins: [...defaultBuiltins(config).filter((one) => one.name !== "http"), http] });
  front = http.front;
  await engine.start();
  iii = connect({ dialer: linkedDialer(() => engine), clock, name: "worker" });
});
afterEach(async () => {
  await iii.close({ drain_ms: 0 });
  await engine.stop();
});

interface Tools {
  readonly signal: AbortSignal;
  writer(): Writer;
  reader(): Reader;
}

async function serve(handler: (tools: Tools) => unknown): Promise<void> {
  iii.registerFunction("test::route", (input, call) => {
    const refs = input as Refs;
    return handler({
      signal: call.signal,
      writer: () => iii.openWriter(refs.response),
      reader: () => iii.openReader(refs.request_body),
    });
  });
  for (const http_method of ["GET", "HEAD", "POST"]) {
    iii.registerTrigger({ type: "http", function_id: "test::route", config: { api_path: "/r", http_method } });
  }
  await iii.trigger("engine::registered-triggers::list", {});
}

function request(changes: Partial<HttpRequest> = {}): HttpRequest {
  return {
    method: "GET",
    path: "/r",
    query: "",
    headers: {},
    readBody: async () => new Uint8Array(),
    async *body() {},
    signal: new AbortController().signal,
    ...changes,
  };
}

/** A client that takes what it is given, or does not. */
class Sink implements BodySink {
  text = "";
  bytes = 0;
  stuck = false;
  ended: "end" | "abort" | undefined;
  get buffered(): number {
    return this.stuck ? this.bytes : 0;
  }
  write(piece: Uint8Array): void {
    this.bytes += piece.byteLength;
    if (piece.byteLength < 100) this.text += new TextDecoder().decode(piece);
  }
  end(): void {
    this.ended ??= "end";
  }
  abort(): void {
    this.ended ??= "abort";
  }
}

function opened(response: HttpResponse, stuck = false): Sink & { drain(): void } {
  if (typeof response.body !== "function") throw new Error(`the body is not streamed: ${String(response.body)}`);
  const sink = Object.assign(new Sink(), { stuck });
  return Object.assign(sink, response.body(sink));
}

const frame = (type: string, fields: object): string => JSON.stringify({ type, ...fields });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test.each<[string, string[], number, [string, string][]]>([
  ["nothing set is 200", [], 200, []],
  ["the last status counts", [frame("set_status", { status_code: 201 }), frame("set_status", { status_code: 404 })], 404, []],
  ["a status that cannot end a request is ignored", [frame("set_status", { status_code: 101 })], 200, []],
  [
    "headers add up",
    [frame("set_headers", { headers: { A: "1" } }), frame("set_headers", { headers: { b: 2 } })],
    200,
    [
      ["A", "1"],
      ["b", "2"],
    ],
  ],
  [
    "a header that is set again is replaced",
    [frame("set_headers", { headers: { A: "1" } }), frame("set_headers", { headers: { a: "2" } })],
    200,
    [["a", "2"]],
  ],
  [
    "lines may repeat a header",
    [frame("set_headers", { headers: ["set-cookie: a", "set-cookie: b:c"] })],
    200,
    [
      ["set-cookie", "a"],
      ["set-cookie", "b:c"],
    ],
  ],
  [
    "so may lists",
    [frame("set_headers", { headers: { "set-cookie": ["a", "b"] } })],
    200,
    [
      ["set-cookie", "a"],
      ["set-cookie", "b"],
    ],
  ],
  [
    "framing is the listener's",
    [frame("set_headers", { headers: { "Content-Length": "9", Connection: "x", "bad name": "y", c: "d\r\ne" } })],
    200,
    [],
  ],
  ["text that is no control frame is ignored", ["[", "[]", "null", frame("other", { status_code: 500 })], 200, []],
])("the head of a stream: %s", async (_title, frames, status, headers) => {
  await serve(async ({ writer }) => {
    const response = writer();
    for (const text of frames) await response.send(text);
    await response.send(bytes("body"));
    await response.send(frame("set_status", { status_code: 500 }));
    await response.close();
  });
  const response = await front(request());
  expect([response.status, response.headers]).toEqual([status, headers]);
  const sink = opened(response);
  await settle();
  expect([sink.text, sink.ended]).toEqual(["body", "end"]);
});

test("a value that comes before the first piece decides, and the writer is let go", async () => {
  const late = Promise.withResolvers<Writer>();
  await serve(async ({ writer }) => {
    const response = writer();
    await response.send(frame("set_status", { status_code: 500 }));
    late.resolve(response);
    return { status_code: 201, body: { by: "value" } };
  });
  expect(await front(request())).toMatchObject({ status: 201, body: '{"by":"value"}' });
  const writer = await late.promise;
  await settle();
  expect(writer.signal.aborted).toBe(true);
});

test("a first piece that comes before the value decides", async () => {
  const go = Promise.withResolvers<void>();
  await serve(async ({ writer }) => {
    const response = writer();
    await response.send(bytes("a"));
    await go.promise;
    await response.send(bytes("b"));
    await response.close();
    return { status_code: 500 };
  });
  const response = await front(request());
  const sink = opened(response);
  go.resolve();
  await settle();
  expect([response.status, sink.text, sink.ended]).toEqual([200, "ab", "end"]);
});

test("nothing returned and no channel opened is an empty answer, as soon as the channel had its time to open", async () => {
  await serve(() => undefined);
  const answer = front(request());
  await settle();
  await clock.advance(99);
  const pending = Symbol("pending");
  expect(await Promise.race([answer, Promise.resolve(pending)])).toBe(pending);
  await clock.advance(2);
  expect(await answer).toMatchObject({ status: 200, body: "{}" });
});

test("a channel that opens after its function has returned still answers", async () => {
  const go = Promise.withResolvers<void>();
  await serve(({ writer }) => {
    void go.promise.then(async () => {
      const response = writer();
      await response.send(bytes("late"));
      await response.close();
    });
  });
  const answer = front(request());
  await settle();
  await clock.advance(50);
  go.resolve();
  const sink = opened(await answer);
  await clock.advance(500);
  expect([sink.text, sink.ended]).toEqual(["late", "end"]);
});

test.each<[string, boolean]>([
  ["a function that does not begin in time is a 504 and is cancelled", false],
  ["control frames alone are no beginning", true],
])("%s", async (_title, talks) => {
  const cancelled = Promise.withResolvers<void>();
  await serve(async ({ signal, writer }) => {
    signal.addEventListener("abort", () => cancelled.resolve());
    if (talks) await writer().send(frame("set_status", { status_code: 200 }));
    await cancelled.promise;
  });
  const answer = front(request());
  await settle();
  await clock.advance(1_001);
  expect(await answer).toEqual({ status: 504, headers: [] });
  await cancelled.promise;
});

test("a body that has begun has no deadline", async () => {
  const go = Promise.withResolvers<void>();
  await serve(async ({ writer, signal }) => {
    const response = writer();
    await response.send(bytes("1"));
    await go.promise;
    await response.send(bytes(signal.aborted ? "x" : "2"));
    await response.close();
  });
  const sink = opened(await front(request()));
  await clock.advance(3_600_000);
  go.resolve();
  await settle();
  expect([sink.text, sink.ended]).toEqual(["12", "end"]);
});

test("a client that goes cancels the function", async () => {
  const cancelled = Promise.withResolvers<string>();
  await serve(async ({ signal }) => {
    signal.addEventListener("abort", () => cancelled.resolve("cancelled"));
    await cancelled.promise;
  });
  const gone = new AbortController();
  const answer = front(request({ signal: gone.signal }));
  await settle();
  gone.abort();
  expect(await cancelled.promise).toBe("cancelled");
  await answer;
});

test("a client that goes in the middle of a stream cancels the function and ends its writer", async () => {
  const cancelled = Promise.withResolvers<Writer>();
  await serve(async ({ signal, writer }) => {
    const response = writer();
    signal.addEventListener("abort", () => cancelled.resolve(response));
    await response.send(bytes("1"));
    await cancelled.promise;
  });
  const gone = new AbortController();
  opened(await front(request({ signal: gone.signal })));
  gone.abort();
  const response = await cancelled.promise;
  await settle();
  expect(response.signal.aborted).toBe(true);
});

test.each<[string, (tools: Tools) => unknown]>([
  [
    "throws",
    async ({ writer }) => {
      await writer().send(bytes("half"));
      throw new Error("no");
    },
  ],
  [
    "dies",
    async ({ writer }) => {
      await writer().send(bytes("half"));
      await iii.close({ drain_ms: 0 });
    },
  ],
])("a function that %s in the middle of its body leaves a body that is cut short", async (_title, handler) => {
  await serve(handler);
  const sink = opened(await front(request()));
  await settle();
  await clock.advance(1_000);
  expect([sink.text, sink.ended]).toEqual(["half", "abort"]);
});

test("HEAD gets the head and no body", async () => {
  await serve(async ({ writer }) => {
    const response = writer();
    await response.send(frame("set_status", { status_code: 206 }));
    await response.send(bytes("body"));
    await response.close();
  });
  expect(await front(request({ method: "HEAD" }))).toEqual({ status: 206, headers: [] });
});

test("a client that does not read holds the function back; nothing is lost when it reads again", async () => {
  let sent = 0;
  await serve(async ({ writer }) => {
    const response = writer();
    for (; sent < 100; sent += 1) await response.send(new Uint8Array(KB64));
    await response.close();
  });
  const sink = opened(await front(request()), true);
  await settle(100);
  expect(sent).toBeLessThan(64);
  while (sink.ended === undefined) {
    sink.stuck = false;
    sink.drain();
    await settle();
  }
  expect([sink.bytes, sink.ended]).toEqual([100 * KB64, "end"]);
});

test("an upload is read no faster than the function takes it", async () => {
  let read = 0;
  async function* body() {
    for (; read < 200; read += 1) yield new Uint8Array(KB64);
  }
  const go = Promise.withResolvers<void>();
  await serve(async ({ reader }) => {
    await go.promise;
    let size = 0;
    for await (const piece of reader()) size += piece.length;
    return { body: { size } };
  });
  const answer = front(request({ method: "POST", body }));
  await settle(50);
  expect(read).toBeLessThan(32);
  go.resolve();
  expect(await answer).toMatchObject({ body: JSON.stringify({ size: 200 * KB64 }) });
});

test("an upload that the client breaks off is told apart from one that is complete", async () => {
  const heard = Promise.withResolvers<unknown>();
  async function* body() {
    yield bytes("half");
    throw new Error("aborted");
  }
  await serve(async ({ reader }) => {
    try {
      for await (const _piece of reader());
      heard.resolve("complete");
    } catch (error) {
      heard.resolve(error);
    }
    return {};
  });
  await front(request({ method: "POST", body }));
  expect(await heard.promise).toMatchObject({ code: "channel_closed" });
});

test("middleware that is late is a 504 that says so", async () => {
  await serve(() => ({}));
  iii.registerFunction("test::late", () => new Promise(() => undefined));
  const config = { api_path: "/late", middleware_function_ids: ["test::late"] };
  iii.registerTrigger({ type: "http", function_id: "test::route", config });
  await iii.trigger("engine::registered-triggers::list", {});
  const answer = front(request({ path: "/late" }));
  await settle();
  await clock.advance(1_001);
  const { status, body } = await answer;
  expect([status, JSON.parse(String(body))]).toMatchObject([504, { error: { code: "MIDDLEWARE_TIMEOUT" } }]);
});
