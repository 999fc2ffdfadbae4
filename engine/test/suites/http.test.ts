// What the official suites ask of HTTP triggers and channels.
import { randomBytes } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import { type Client, GENERATIONS, type Handler, suite } from "./clients.ts";

function route(iii: Client, http_method: string, api_path: string, handler: Handler, more: object = {}) {
  const function_id = `suite::${http_method.toLowerCase()}-${api_path}`;
  iii.registerFunction(function_id, handler);
  return iii.registerTrigger({ type: "http", function_id, config: { api_path, http_method, ...more } });
}

const json = { "content-type": "application/json" };

describe.each(GENERATIONS)("P7.3 HTTP $name", (generation) => {
  test("method, path parameters, query and JSON body come as they were sent; the status is the function's", async () => {
    const { iii, httpUrl, settled } = await suite(generation);
    route(iii, "GET", "items/:id", async ({ path_params, query_params }) => ({ body: { path_params, query_params } }));
    route(iii, "POST", "/items", async ({ body, method }) => ({ status_code: 201, headers: { "x-a": "b" }, body: { body, method } }));
    await settled();
    const got = await fetch(`${httpUrl}/items/42?q=1`);
    expect([got.status, await got.json()]).toEqual([200, { path_params: { id: "42" }, query_params: { q: "1" } }]);
    const made = await fetch(`${httpUrl}/items`, { method: "POST", headers: json, body: '{"n":1}' });
    expect([made.status, made.headers.get("x-a"), await made.json()]).toEqual([201, "b", { body: { n: 1 }, method: "POST" }]);
  });

  test("a text under a type of its own is sent as it is", async () => {
    const { iii, httpUrl, settled } = await suite(generation);
    route(iii, "GET", "/xml", async () => ({ headers: { "Content-Type": "text/xml" }, body: "<a/>" }));
    await settled();
    const got = await fetch(`${httpUrl}/xml`);
    expect([got.headers.get("content-type"), await got.text()]).toEqual(["text/xml", "<a/>"]);
  });

  test("a route is a 404 before it is bound and after it is unbound; further keys of its config change nothing", async () => {
    const { iii, httpUrl, settled } = await suite(generation);
    const status = async () => (await fetch(`${httpUrl}/health`)).status;
    expect(await status()).toBe(404);
    const bound = route(iii, "GET", "health", async () => ({ body: { ok: true } }), { description: "is it up" });
    await settled();
    expect(await status()).toBe(200);
    bound.unregister();
    await settled();
    expect(await status()).toBe(404);
  });

  test("an error of the function is a 500 with its code, a false condition a 422", async () => {
    const { iii, httpUrl, settled } = await suite(generation);
    iii.registerFunction("suite::never", async () => false);
    route(iii, "GET", "/fails", async () => {
      throw new Error("no");
    });
    route(iii, "GET", "/never", async () => ({}), { condition_function_id: "suite::never" });
    await settled();
    const failed = await fetch(`${httpUrl}/fails`);
    expect([failed.status, await failed.json()]).toMatchObject([500, { error: { code: "invocation_failed" } }]);
    const skipped = await fetch(`${httpUrl}/never`);
    expect([skipped.status, await skipped.json()]).toMatchObject([422, { error: { code: "CONDITION_NOT_MET" } }]);
  });

  test("middleware lets a request on or answers in its place, in order, and sees the request", async () => {
    const { iii, httpUrl, settled } = await suite(generation);
    const order: unknown[] = [];
    const middleware = (name: string, answer: (request: { headers: Record<string, string> }) => object) =>
      iii.registerFunction(name, async ({ phase, request }) => {
        order.push([name, phase, request.method, request.path_params, request.query_params]);
        return answer(request);
      });
    middleware("suite::log", () => ({ action: "continue" }));
    middleware("suite::guard", ({ headers }) =>
      headers["x-pass"] === "1" ? { action: "continue" } : { action: "respond", response: { status_code: 403, body: { error: "no" } } },
    );
    route(iii, "GET", "/guarded/:id", async () => ({ body: { in: true } }), { middleware_function_ids: ["suite::log", "suite::guard"] });
    await settled();
    const refused = await fetch(`${httpUrl}/guarded/7?a=b`);
    expect([refused.status, await refused.json()]).toEqual([403, { error: "no" }]);
    const sent = ["preHandler", "GET", { id: "7" }, { a: "b" }];
    expect(order).toEqual([
      ["suite::log", ...sent],
      ["suite::guard", ...sent],
    ]);
    const let_in = await fetch(`${httpUrl}/guarded/7`, { headers: { "x-pass": "1" } });
    expect([let_in.status, await let_in.json()]).toEqual([200, { in: true }]);
  });
});

describe.each(GENERATIONS)("P7.3 channels $name", (generation) => {
  test("texts come in order, before the writer closes", async () => {
    const { iii } = await suite(generation);
    const pipe = await iii.openChannel();
    for (const text of ["one", "two", "three"]) pipe.sendText(text);
    await vi.waitFor(() => expect(pipe.texts).toEqual(["one", "two", "three"]), { timeout: 2_000, interval: 5 });
    pipe.close();
    expect(await pipe.readAll()).toHaveLength(0);
  });

  test("bytes come whole, beside the texts that were sent before them", async () => {
    const { iii } = await suite(generation);
    const pipe = await iii.openChannel();
    const bytes = randomBytes(300_000);
    pipe.sendText("begin");
    await pipe.sendBytes(bytes);
    pipe.close();
    expect((await pipe.readAll()).equals(bytes)).toBe(true);
    expect(pipe.texts).toEqual(["begin"]);
  });
});
