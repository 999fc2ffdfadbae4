import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BusError, type Iii } from "@iii/sdk";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listen } from "../../src/transport/http.ts";
import { type HttpBench, httpBench } from "./bench.ts";

let on: HttpBench;
let iii: Iii;
let folder: string;
beforeEach(async () => {
  on = await httpBench({ max_body_bytes: 1_000 });
  iii = on.connect();
  folder = mkdtempSync(join(tmpdir(), "iii-http-"));
});
afterEach(async () => {
  await on.stop();
  rmSync(folder, { recursive: true });
});

/** Registers a route and waits until the engine knows it. */
async function route(
  iii: Iii,
  api_path: string,
  handler: (input: never) => unknown,
  more: Record<string, unknown> = {},
): Promise<{ unregister(): void }> {
  const id = `test::${more["http_method"] ?? "GET"}${api_path}`;
  const served = iii.registerFunction(id, (input) => handler(input as never));
  const bound = iii.registerTrigger({ type: "http", function_id: id, config: { api_path, ...more } });
  await iii.trigger("engine::registered-triggers::list", {});
  return {
    unregister() {
      bound.unregister();
      served.unregister();
    },
  };
}

test("a request reaches the function in full, and its answer comes back", async () => {
  await route(iii, "/items/:id", (input) => ({ status_code: 201, headers: { "X-A": "b" }, body: { got: input } }), {
    http_method: "POST",
  });
  const response = await fetch(`${on.url}/items/a%20b?q=1&q=2`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"n":1}',
  });
  expect(response.status).toBe(201);
  expect(response.headers.get("x-a")).toBe("b");
  expect(response.headers.get("content-type")).toBe("application/json");
  const { got } = (await response.json()) as { got: Record<string, unknown> };
  expect(got).toMatchObject({
    query_params: { q: "2" },
    path_params: { id: "a%20b" },
    path: "/items/:id",
    method: "POST",
    body: { n: 1 },
    trigger: { type: "http", path: "/items/:id", method: "POST" },
  });
});

test.each<[string, unknown, number, string]>([
  ["a value that is no object is an empty 200", "text", 200, "{}"],
  ["no body is an empty object", { status_code: 202 }, 202, "{}"],
  ["text with a type is sent as it is", { headers: { "content-type": "text/plain" }, body: "hi" }, 200, "hi"],
  ["null with a type is empty", { headers: { "Content-Type": "text/plain" }, body: null }, 200, ""],
  ["headers may be lines", { headers: ["Content-Type: text/csv"], body: "a,b" }, 200, "a,b"],
])("%s", async (_title, answer, status, body) => {
  await route(iii, "/r", () => answer);
  const response = await fetch(`${on.url}/r`);
  expect([response.status, await response.text()]).toEqual([status, body]);
});

test("a thrown error is a 500 with its code and an id to find it by", async () => {
  await route(iii, "/r", () => {
    throw new BusError("io_error", "disk gone");
  });
  const response = await fetch(`${on.url}/r`);
  expect(response.status).toBe(500);
  expect(await response.json()).toEqual({ error: { code: "io_error", message: "disk gone", error_id: expect.any(String) } });
});

test("a timeout that the function itself ran into is its error like any other", async () => {
  await route(iii, "/r", () => {
    throw new BusError("TIMEOUT", "the database is slow");
  });
  const response = await fetch(`${on.url}/r`);
  expect([response.status, await response.json()]).toMatchObject([500, { error: { code: "TIMEOUT", message: "the database is slow" } }]);
});

test("no route is 404, another method 405 with what is allowed", async () => {
  await route(iii, "/r", () => ({}), { http_method: "POST" });
  const missing = await fetch(`${on.url}/nothing`);
  expect([missing.status, await missing.json()]).toEqual([404, { error: { code: "NOT_FOUND", message: "Not Found" } }]);
  const wrong = await fetch(`${on.url}/r`);
  expect([wrong.status, wrong.headers.get("allow"), await wrong.text()]).toEqual([405, "POST", ""]);
});

test("a function that takes too long is a 504", async () => {
  await using slow = Object.assign(await httpBench({ timeout_ms: 30 }), {
    async [Symbol.asyncDispose]() {
      await slow.stop();
    },
  });
  await route(slow.connect(), "/r", () => new Promise(() => undefined));
  expect((await fetch(`${slow.url}/r`)).status).toBe(504);
});

test("JSON over the limit is 413, with or without its length; what is not held in memory has no limit", async () => {
  await route(iii, "/r", () => ({}), { http_method: "POST" });
  const headers = { "content-type": "application/json" };
  expect((await fetch(`${on.url}/r`, { method: "POST", headers, body: "1".repeat(1_001) })).status).toBe(413);
  expect((await fetch(`${on.url}/r`, { method: "POST", body: "x".repeat(1_001) })).status).toBe(200);
  const status = await new Promise<number | undefined>((done) => {
    const stream = httpRequest(`${on.url}/r`, { method: "POST", headers }, (response) => done(response.resume().statusCode));
    stream.on("error", () => undefined);
    stream.write("x".repeat(600));
    stream.end("x".repeat(600));
  });
  expect(status).toBe(413);
});

test("a sender of far too much is heard out after the answer, so that it gets to read it", async () => {
  await route(iii, "/r", () => ({}), { http_method: "POST" });
  const { port, host } = new URL(on.url);
  const size = 4_000_000;
  const socket = connectTcp(Number(port), "127.0.0.1");
  const text: string[] = [];
  const ended = new Promise<Error | undefined>((done) => socket.once("end", () => done(undefined)).once("error", done));
  socket.on("data", (chunk) => text.push(String(chunk)));
  const answered = new Promise<unknown>((done) => socket.once("data", done));
  socket.write(`POST /r HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${size}\r\n\r\n`);
  await answered;
  for (let n = 0; n < 4; n += 1) await new Promise<void>((done) => socket.write("1".repeat(size / 4), () => done()));
  expect(await ended).toBeUndefined();
  expect(text.join("")).toMatch(/^HTTP\/1.1 413[\s\S]*payload_too_large/);
  socket.destroy();
});

test("JSON that is broken is a null body", async () => {
  await route(iii, "/r", (input: { body: unknown }) => ({ body: { body: input.body } }), { http_method: "POST" });
  const response = await fetch(`${on.url}/r`, { method: "POST", headers: { "content-type": "application/json" }, body: "{" });
  expect(await response.json()).toEqual({ body: null });
});

test("a condition that is false answers 422 and the function does not run", async () => {
  let runs = 0;
  iii.registerFunction("test::no", () => false);
  await route(iii, "/r", () => (runs += 1), { condition_function_id: "test::no" });
  const response = await fetch(`${on.url}/r`);
  expect([response.status, runs]).toEqual([422, 0]);
  expect(await response.json()).toMatchObject({ error: { code: "CONDITION_NOT_MET" }, skipped: true });
});

test("middleware that responds ends the request", async () => {
  iii.registerFunction("test::go", () => ({ action: "continue" }));
  iii.registerFunction("test::halt", () => ({ action: "respond", response: { status_code: 401, body: { no: 1 } } }));
  await route(iii, "/r", () => ({ body: "never" }), { middleware_function_ids: ["test::go", "test::halt"] });
  const response = await fetch(`${on.url}/r`);
  expect([response.status, await response.json()]).toEqual([401, { no: 1 }]);
});

test("the newest route serves; when its worker goes, the one before serves again", async () => {
  await route(iii, "/r", () => ({ body: { by: "first" } }));
  const second = on.connect();
  const own = await route(second, "/r", () => ({ body: { by: "second" } }));
  expect(await (await fetch(`${on.url}/r`)).json()).toEqual({ by: "second" });
  own.unregister();
  await second.trigger("engine::registered-triggers::list", {});
  expect(await (await fetch(`${on.url}/r`)).json()).toEqual({ by: "first" });
});

test("a page of another site is refused, whatever it asks for", async () => {
  const response = await fetch(`${on.url}/healthz`, { headers: { origin: "https://evil.example" } });
  expect(response.status).toBe(403);
  const rebound = await new Promise<number | undefined>((done) => {
    httpRequest(`${on.url}/healthz`, { headers: { host: "evil.example" } }, (answer) => done(answer.resume().statusCode)).end();
  });
  expect(rebound).toBe(403);
});

test("a page of an allowed origin may ask, send and read; a page of another may not", async () => {
  const origin = "http://app.test";
  const open = await httpBench({}, [origin]);
  try {
    await route(open.connect(), "/r", () => ({ body: { ok: 1 } }), { http_method: "PUT" });
    const asks = { "access-control-request-method": "PUT", "access-control-request-headers": "content-type" };
    const asked = await fetch(`${open.url}/r`, { method: "OPTIONS", headers: { origin, ...asks } });
    expect([asked.status, Object.fromEntries(asked.headers)]).toMatchObject([
      204,
      { "access-control-allow-origin": origin, "access-control-allow-methods": "PUT", "access-control-allow-headers": "content-type" },
    ]);
    const read = await fetch(`${open.url}/r`, { method: "PUT", headers: { origin } });
    expect([read.status, read.headers.get("access-control-allow-origin"), read.headers.get("vary")]).toEqual([200, origin, "origin"]);
    const refused = await fetch(`${open.url}/r`, { method: "OPTIONS", headers: { origin: "http://other.test", ...asks } });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([403, null]);
  } finally {
    await open.stop();
  }
});

test("without a page, / is a status document", async () => {
  expect(await (await fetch(`${on.url}/`)).json()).toEqual({ name: "iii", version: "0", health: "/healthz" });
});

async function mountPage(iii: Iii): Promise<void> {
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), "<p>page</p>");
  writeFileSync(join(folder, "assets/app-Ab12Cd34.js"), "1");
  writeFileSync(join(folder, "..", "iii-secret.txt"), "secret");
  symlinkSync(join(folder, "..", "iii-secret.txt"), join(folder, "leak.txt"));
  await iii.trigger("http::static", { mount: "/", dir: folder, spa: true });
  rmSync(join(folder, "..", "iii-secret.txt"));
}
const html = { headers: { accept: "text/html" } };

test("a mounted page has its security headers and a tag, and is not sent twice", async () => {
  await mountPage(iii);
  const page = await fetch(`${on.url}/`, html);
  expect(await page.text()).toBe("<p>page</p>");
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(page.headers.get("cache-control")).toBe("no-cache");
  const again = await fetch(`${on.url}/`, { headers: { ...html.headers, "if-none-match": page.headers.get("etag") ?? "" } });
  expect(again.status).toBe(304);
  const asset = await fetch(`${on.url}/assets/app-Ab12Cd34.js`);
  expect(asset.headers.get("cache-control")).toContain("immutable");
});

test.each([
  ["a page load of an unknown path gets the page", "/chat/s1", html, 200],
  ["a program's request does not", "/chat/s1", {}, 404],
  ["paths of programs never do", "/api/x", html, 404],
  ["nor does the bus", "/ws/x", html, 404],
  ["a link that leads out of the folder is not served", "/leak.txt", {}, 404],
  ["a path that climbs is not served", "/%2e%2e/iii-secret.txt", {}, 404],
  ["an escape that is broken is not found", "/%zz", {}, 404],
])("%s", async (_title, path, init, status) => {
  await mountPage(iii);
  expect((await fetch(`${on.url}${path}`, init)).status).toBe(status);
});

test("a mount ends with its worker, and / is the status document again", async () => {
  const page = on.connect();
  await mountPage(page);
  await page.close({ drain_ms: 0 });
  await expect.poll(async () => (await fetch(`${on.url}/`, html)).headers.get("content-type")).toBe("application/json");
});

test("a port in use says which, and how to change it", async () => {
  const port = Number(new URL(on.url).port);
  const second = listen({
    host: "127.0.0.1",
    port,
    purpose: { name: "bus", env: "III_PORT", key: "engine.port" },
    allowedOrigins: [],
    front: async () => ({ status: 200, headers: [] }),
    onUpgrade: () => undefined,
  });
  await expect(second).rejects.toMatchObject({
    code: "port_in_use",
    message: `bus: port ${port} is in use. Another engine may be running; else set III_PORT or engine.port in config.yaml to a free port`,
  });
});
