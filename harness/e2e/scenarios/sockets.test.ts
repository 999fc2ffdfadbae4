// Who gets a socket: our own page and programs of this machine, and no page of any other site. And what a browser may not reach then.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rawRequest, rawSocket, upgrade } from "../support/raw.ts";
import { type Stack, startStack } from "../support/stack.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ config: (shipped) => shipped.replace("  queues:\n", "  queues:\n    work: {}\n") });
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

const decision = { session_id: "s", function_call_id: "c", decision: "allow" };
const evil = "https://evil.example";
const ports = (): [string, string][] => [
  [stack.url, new URL(stack.url).host],
  [`${stack.httpUrl}/ws`, new URL(stack.httpUrl).host],
];

test.each([
  ["a foreign Origin", { origin: evil }],
  ["an opaque Origin", { origin: "null" }],
  ["the Origin of another program on this machine", { origin: "http://127.0.0.1:8080" }],
  ["an Origin that only starts like ours", { origin: "http://127.0.0.1.evil.example" }],
  ["a foreign Host", { host: "evil.example" }],
  ["a Host that only starts like ours", { host: "127.0.0.1.evil.example" }],
  ["a rebound name, Host and Origin alike", { host: "evil.example:80", origin: "http://evil.example:80" }],
  ["a page's request without Origin", { "sec-fetch-site": "cross-site" }],
  ["a page's request of the same site without Origin", { "sec-fetch-site": "same-origin" }],
])("%s: 403 before the upgrade, on both ports and every path", async (_what, headers) => {
  for (const [base] of ports()) {
    for (const path of ["", "/otel", "/ws/channels/x?key=k&dir=read"]) {
      const answer = await upgrade(`${base}${path}`, headers);
      expect(answer.status).toBe(403);
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "FORBIDDEN" } });
    }
  }
});

test("our own page and programs get one", async () => {
  for (const [base, host] of ports()) {
    expect(await upgrade(base, {})).toMatchObject({ status: 101 });
    expect(await upgrade(base, { origin: `http://${host}`, "sec-fetch-site": "same-origin" })).toMatchObject({ status: 101 });
  }
});

test("the same for requests: a page of another site starts no turn and reads nothing", async () => {
  const body = JSON.stringify({ session_id: "csrf", payload: { messages: [{ role: "user", content: "say hi" }] } });
  const more: RequestInit = { method: "POST", body };
  const json = { "content-type": "application/json" };
  for (const headers of [{ origin: evil }, { origin: "null" }, { "sec-fetch-site": "cross-site" }]) {
    expect((await fetch(`${stack.httpUrl}/harness/trigger`, { ...more, headers: { ...json, ...headers } })).status).toBe(403);
    expect((await fetch(`${stack.httpUrl}/healthz`, { headers })).status).toBe(403);
  }
  expect((await stack.trigger("turn::get_state", { session_id: "csrf" })) ?? null).toBeNull();
});

const KEYED = new Set(["auth::set_token", "auth::status", "auth::list_providers"]);

test.each(["without a key", "with its key"])(
  "a page %s reads no credential: not called, not queued, not bound, not in a transaction",
  async (how) => {
    const keyed = how === "with its key";
    const base = `${stack.httpUrl.replace("http:", "ws:")}/ws`;
    using page = await rawSocket(keyed ? `${base}/as/${stack.pageKey.replace("#key=", "")}` : base, { origin: stack.httpUrl });
    expect(await page.call("approval::list_pending", {})).toMatchObject({ result: [] });
    const decided = keyed ? { result: { ok: false, error: "not_pending" } } : { error: { code: "FORBIDDEN" } };
    expect(await page.call("approval::resolve", decision)).toMatchObject(decided);
    const { functions } = await stack.trigger<{ functions: { function_id: string }[] }>("engine::functions::list", { prefix: "auth::" });
    const ids = [...functions.map((row) => row.function_id), "auth::no_such"].filter((id) => !keyed || !KEYED.has(id));
    expect(ids.length).toBeGreaterThan(keyed ? 2 : 3);
    for (const function_id of ids) {
      const queued = { queue: "work", function_id, data: {} };
      for (const answer of [
        await page.call(function_id, { provider: "anthropic" }),
        await page.call(function_id, {}, { action: { type: "enqueue", queue: "work" } }),
        await page.call("engine::queue::enqueue", queued),
        await page.call("state::transact", { enqueue: [queued] }),
        await page.call("engine::register_trigger", { trigger_type: "state", function_id, config: {} }),
        await page.call("engine::register_trigger", {
          trigger_type: "state",
          function_id: "harness::fanout::none",
          config: { condition_function_id: function_id },
        }),
      ]) {
        expect(answer).toMatchObject({ error: { code: "FORBIDDEN" } });
      }
    }
  },
);

describe("requests that no client would make", () => {
  const UNDECODABLE = ["/%", "/%E0%A4%A", "/%ff%fe", "/ws/channels/%E0%A4%A?key=%&dir=read", "/ws/channels/%00?dir=%", "/otel/%2e%2e"];

  test.each(UNDECODABLE)("%s is refused for what it is, as a request and as an upgrade", async (path) => {
    for (const base of [stack.url, stack.httpUrl, `${stack.httpUrl}/ws`]) {
      const { status } = await upgrade(base, {}, path);
      expect([400, 404]).toContain(status);
    }
    const { host } = new URL(stack.httpUrl);
    expect(await rawRequest(stack.httpUrl, `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 (400|404|200) /,
    );
    expect((await stack.health()).status).toBe(200);
  });

  test.each([
    ["no HTTP at all", "\u0000\u0001garbage\r\n\r\n", 400],
    ["no Host", "GET / HTTP/1.1\r\nconnection: close\r\n\r\n", 400],
    ["two lengths", "POST /harness/trigger HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}", 400],
    [
      "a length and chunks",
      "POST /harness/trigger HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
    ],
    ["headers without end", `GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ${"x".repeat(40_000)}\r\n\r\n`, 431],
  ])("%s: answered, closed, and nobody else notices", async (_what, text, status) => {
    for (const base of [stack.url, stack.httpUrl]) expect(await rawRequest(base, text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect((await stack.health()).status).toBe(200);
  });

  test("a body over the limit is 413 with the limit, a wrong method 405, and no turn starts", async () => {
    const headers = { "content-type": "application/json" };
    const large = await fetch(`${stack.httpUrl}/harness/trigger`, { method: "POST", headers, body: `"${"x".repeat(11 * 1_048_576)}"` });
    expect(large.status).toBe(413);
    expect(await large.json()).toMatchObject({ error: { code: "payload_too_large", message: expect.stringMatching(/10485760/) } });
    expect((await fetch(`${stack.httpUrl}/harness/trigger`)).status).toBe(405);
    expect(await stack.trigger("session-tree::list", {})).toMatchObject({ sessions: [] });
  });
});
