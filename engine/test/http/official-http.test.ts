// The published client's HTTP features, unmodified, against our engine over real sockets.
import { createHash, randomBytes } from "node:crypto";
import { Agent, request as httpRequest } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ChannelReader, ChannelWriter } from "iii-sdk/channel";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { HttpOptions } from "../../src/builtin/http/register.ts";
import { NODE, type NodeClient } from "../suites/clients.ts";
import { type HttpBench, httpBench } from "./bench.ts";

process.env["OTEL_ENABLED"] = "false";

const MB = 1_048_576;

interface Incoming {
  readonly body: unknown;
  readonly headers: Record<string, string>;
  readonly request_body: ChannelReader;
  readonly response: ChannelWriter;
}

let on: HttpBench;
let sdk: NodeClient;
async function start(connect: (url: string) => NodeClient, options: HttpOptions = {}): Promise<void> {
  on = await httpBench(options);
  sdk = connect(on.busUrl);
}
afterEach(async () => {
  await sdk.shutdown();
  await on.stop();
});

/** Registers a route on the published client and waits until the engine knows it. */
async function route(method: string, api_path: string, handler: (request: Incoming) => Promise<unknown>): Promise<void> {
  const id = `test::${method}${api_path}`;
  sdk.registerFunction(id, handler);
  sdk.registerTrigger({ type: "http", function_id: id, config: { api_path, http_method: method } });
  await sdk.trigger({ function_id: "engine::registered-triggers::list", payload: {} });
}

const setStatus = (response: ChannelWriter, status_code: number): void =>
  response.sendMessage(JSON.stringify({ type: "set_status", status_code }));
const setHeaders = (response: ChannelWriter, headers: object): void =>
  response.sendMessage(JSON.stringify({ type: "set_headers", headers }));
const sha = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

describe.each(NODE)("P7.3 bodies, $name", ({ connect }) => {
  beforeEach(() => start(connect));

  test("an upload of a few megabytes arrives byte for byte", async () => {
    await route("POST", "/up", async ({ body, request_body }) => {
      const bytes = await request_body.readAll();
      return { body: { body, size: bytes.length, sha: sha(bytes) } };
    });
    const bytes = randomBytes(5 * MB + 7);
    const response = await fetch(`${on.url}/up`, { method: "POST", headers: { "content-type": "application/pdf" }, body: bytes });
    expect(await response.json()).toEqual({ body: null, size: bytes.length, sha: sha(bytes) });
  });

  test("a download of a few megabytes arrives byte for byte, with the head that was set", async () => {
    const bytes = randomBytes(5 * MB + 7);
    await route("GET", "/down", async ({ response }) => {
      setStatus(response, 203);
      setHeaders(response, { "Content-Type": "application/pdf", "X-A": "b" });
      await pipeline(Readable.from([bytes.subarray(0, 3 * MB), bytes.subarray(3 * MB)]), response.stream);
    });
    const response = await fetch(`${on.url}/down`);
    expect([response.status, response.headers.get("content-type"), response.headers.get("x-a")]).toEqual([203, "application/pdf", "b"]);
    expect(sha(new Uint8Array(await response.arrayBuffer()))).toBe(sha(bytes));
  });

  test("a body may flow back while it still comes in, and the connection serves on", async () => {
    await route("POST", "/echo", ({ request_body, response }) => pipeline(request_body.stream, response.stream));
    await route("GET", "/next", async () => ({ body: {} }));
    const bytes = randomBytes(3 * MB);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const echoed = await new Promise<Buffer>((done, fail) => {
        const outgoing = httpRequest(`${on.url}/echo`, { method: "POST", agent }, (answer) => {
          const pieces: Buffer[] = [];
          answer.on("data", (piece: Buffer) => pieces.push(piece));
          answer.on("end", () => done(Buffer.concat(pieces)));
          outgoing.end(bytes.subarray(MB));
        });
        outgoing.on("error", fail);
        outgoing.write(bytes.subarray(0, MB));
      });
      expect(sha(echoed)).toBe(sha(bytes));
      const status = await new Promise((done, fail) => {
        const next = httpRequest(`${on.url}/next`, { agent }, (answer) => done(answer.resume().statusCode)).on("error", fail);
        next.end();
      });
      expect(status).toBe(200);
    } finally {
      agent.destroy();
    }
  });

  test("a slow client gets a download to its end, although the function has long returned", async () => {
    const bytes = randomBytes(12 * MB);
    let returned = false;
    await route("GET", "/down", async ({ response }) => {
      await pipeline(Readable.from([bytes]), response.stream);
      returned = true;
    });
    const response = await fetch(`${on.url}/down`);
    const hash = createHash("sha256");
    for await (const piece of response.body ?? []) {
      hash.update(piece);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(hash.digest("hex")).toBe(sha(bytes));
    await vi.waitUntil(() => returned);
  });

  test("JSON comes parsed in `body` and byte for byte in the channel", async () => {
    await route("POST", "/raw", async ({ body, request_body, response }) => {
      const raw = (await request_body.readAll()).toString();
      setHeaders(response, { "content-type": "application/json" });
      response.stream.end(Buffer.from(JSON.stringify({ body, raw })));
    });
    const raw = '{"z":2, "a":1}';
    const post = (body: string) => fetch(`${on.url}/raw`, { method: "POST", headers: { "content-type": "application/json" }, body });
    expect(await (await post(raw)).json()).toEqual({ body: { z: 2, a: 1 }, raw });
    expect(await (await post("{")).json()).toEqual({ body: null, raw: "{" });
  });
});

describe.each(NODE)("P7.3 streams, $name", ({ connect }) => {
  beforeEach(() => start(connect));

  test("events are streamed one by one, past the time that a function has to begin", async () => {
    await on.stop();
    await sdk.shutdown();
    await start(connect, { timeout_ms: 200 });
    const next: (() => void)[] = [];
    await route("GET", "/events", async ({ response }) => {
      setHeaders(response, { "content-type": "text/event-stream", "cache-control": "no-cache", connection: "keep-alive" });
      for (let n = 1; n <= 4; n += 1) {
        response.stream.write(Buffer.from(`id: ${n}\ndata: event ${n}\n\n`));
        await new Promise<void>((resolve) => next.push(resolve));
      }
      response.stream.end();
    });
    const response = await fetch(`${on.url}/events`);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const events: string[] = [];
    for await (const piece of response.body ?? []) {
      events.push(Buffer.from(piece).toString());
      await new Promise((resolve) => setTimeout(resolve, 80));
      next.shift()?.();
    }
    expect(events).toEqual([1, 2, 3, 4].map((n) => `id: ${n}\ndata: event ${n}\n\n`));
  });

  test("text with a type of its own is sent as it is, under exactly that type", async () => {
    const body = '<?xml version="1.0"?><note>hello</note>';
    await route("POST", "/xml", async () => ({ status_code: 200, headers: { "Content-Type": "text/xml" }, body }));
    const response = await fetch(`${on.url}/xml`, { method: "POST" });
    expect([response.headers.get("content-type"), await response.text()]).toEqual(["text/xml", body]);
  });

  test("forms and their files come as raw bytes", async () => {
    await route("POST", "/form", async ({ body, headers, request_body }) => {
      const raw = await request_body.readAll();
      const form = await new Response(new Uint8Array(raw), { headers: { "content-type": headers["content-type"] ?? "" } }).formData();
      const fields = [...form].map(([name, value]) => [name, typeof value === "string" ? value : value.size]);
      return { body: { body, fields } };
    });
    const form = new FormData();
    form.append("title", "A document");
    form.append("file", new Blob([randomBytes(2 * MB)]), "handbook.pdf");
    const multipart = await fetch(`${on.url}/form`, { method: "POST", body: form });
    expect(await multipart.json()).toEqual({
      body: null,
      fields: [
        ["title", "A document"],
        ["file", 2 * MB],
      ],
    });
    const urlencoded = await fetch(`${on.url}/form`, { method: "POST", body: new URLSearchParams({ name: "A B", age: "30" }) });
    expect(await urlencoded.json()).toEqual({
      body: null,
      fields: [
        ["name", "A B"],
        ["age", "30"],
      ],
    });
  });

  test("a client that goes ends the stream, and the function's writer hears it", async () => {
    const ended = Promise.withResolvers<void>();
    await route("GET", "/events", async ({ response }) => {
      response.stream.on("close", () => ended.resolve());
      response.stream.on("error", () => undefined);
      response.stream.write(Buffer.from("data: 1\n\n"));
      await ended.promise;
    });
    const gone = new AbortController();
    const response = await fetch(`${on.url}/events`, { signal: gone.signal });
    expect(response.status).toBe(200);
    gone.abort();
    await ended.promise;
  });
});

describe.each(NODE)("P7.3 answers, $name", ({ connect, hearsOfBindings }) => {
  beforeEach(() => start(connect));

  test("a function that returns nothing and writes nothing answers soon", async () => {
    await route("POST", "/hook", async () => undefined);
    const response = await fetch(`${on.url}/hook`, { method: "POST", body: "x" });
    expect([response.status, await response.text()]).toEqual([200, "{}"]);
  });

  test("a function that returns a value while its channels are still opening keeps its process", async () => {
    const closed = Promise.withResolvers<void>();
    await route("POST", "/both", async ({ request_body, response }) => {
      // Without a listener for errors, as functions are: an upgrade that is refused would end the process.
      response.stream.on("close", () => closed.resolve());
      request_body.stream.resume();
      setStatus(response, 500);
      return { status_code: 201, body: { by: "value" } };
    });
    const answer = await fetch(`${on.url}/both`, { method: "POST", body: "x" });
    expect([answer.status, await answer.json()]).toEqual([201, { by: "value" }]);
    await closed.promise;
  });

  test("a function that fails in the middle of its body cuts the response short", async () => {
    await route("GET", "/half", async ({ response }) => {
      await new Promise((resolve) => response.stream.write(Buffer.from("half"), resolve));
      throw new Error("no");
    });
    const response = await fetch(`${on.url}/half`);
    await expect(response.text()).rejects.toThrow();
  });

  test("a head alone is an answer", async () => {
    await route("DELETE", "/thing", async ({ response }) => {
      setStatus(response, 204);
      response.close();
    });
    const response = await fetch(`${on.url}/thing`, { method: "DELETE" });
    expect([response.status, await response.text()]).toEqual([204, ""]);
  });

  test("a route whose parameter names conflict is refused in words, and the first one serves on", async () => {
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    try {
      await route("GET", "/a/:x", async () => ({ body: { by: "first" } }));
      await route("GET", "/a/:y", async () => ({ body: { by: "second" } }));
      if (hearsOfBindings) await vi.waitUntil(() => said.mock.calls.some((call) => JSON.stringify(call).includes("conflict")));
      expect(await (await fetch(`${on.url}/a/1`)).json()).toEqual({ by: "first" });
    } finally {
      said.mockRestore();
    }
  });
});
