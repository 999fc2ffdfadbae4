// Tokens on real sockets: in the address of the bus, and as a bearer of HTTP requests.
import { createEngine, createMemoryStore, defaultBuiltins, type Engine, upgradeHandler } from "@iii/engine";
import { httpBuiltin, type Servers, serve } from "@iii/engine/server";
import { type Client, connect, silentLogger, systemClock, systemRandom } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { afterEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { defaultEngineConfig } from "../../src/config.ts";

const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

interface Stand {
  readonly engine: Engine;
  readonly servers: Servers;
  connect(path?: string): Client;
}

async function stand(auth: "local" | "required"): Promise<Stand> {
  const config = defaultEngineConfig({
    store: "memory",
    port: 0,
    http: { port: 0, allowed_origins: [] },
    auth,
    allowed_hosts: ["bus.example"],
  });
  const http = httpBuiltin({ auth });
  const deps = { clock: systemClock, random: systemRandom, store: createMemoryStore(), log: silentLogger };
  const builtins = [...defaultBuiltins(config).filter(({ name }) => name !== http.name), http];
  const entries = new Map([["gate", { provides: ["approval::*"], calls: [] }]]);
  const engine = createEngine({ config, deps, builtins, entries });
  await engine.start();
  const principalOf = (token: string) => engine.tokens.find(token);
  const servers = await serve({ config, front: http.front, principalOf, upgrades: (prefix) => upgradeHandler(engine, { prefix }) });
  ending.push(
    () => engine.stop(),
    () => servers.close(),
  );
  return {
    engine,
    servers,
    connect(path = "") {
      const client = connect({ dialer: wsDialer(`ws://127.0.0.1:${servers.port}${path}`) });
      ending.push(() => client.close({ drain_ms: 0 }));
      return client;
    },
  };
}

/** How an upgrade ends: the HTTP status, or `open`. */
function dial(port: number, path: string, headers: Record<string, string> = {}): Promise<number | "open"> {
  return new Promise((resolve) => {
    const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });
    ws.on("open", () => {
      ws.terminate();
      resolve("open");
    });
    ws.on("unexpected-response", (request, response) => {
      request.destroy();
      resolve(response.statusCode ?? 0);
    });
    ws.on("error", () => {});
  });
}

test("P5.1 a token in the address is taken on every path that clients append to it; an unknown one is a 401, never a stranger", async () => {
  const { engine, servers } = await stand("local");
  const token = await engine.tokens.issue({ kind: "entry", name: "gate" });
  for (const path of [`/as/${token}`, `/as/${token}/`, `/as/${token}/otel`, `/ws/as/${token}`])
    expect([path, await dial(servers.port, path)]).toEqual([path, "open"]);
  for (const path of [`/ws/as/${token}`, `/ws/as/${token}/otel`])
    expect([path, await dial(servers.httpPort, path)]).toEqual([path, "open"]);
  expect(await dial(servers.port, `/as/${token}/ws/channels/x?key=y&dir=read`)).toBe(404);
  for (const wrong of ["/as/unknown", "/as/", "/as", `/as/${token}x`, `/as/${token.toUpperCase()}`, "/as/unknown/otel"]) {
    expect([wrong, await dial(servers.port, wrong)]).toEqual([wrong, 401]);
  }
  expect(await dial(servers.port, "/")).toBe("open");
});

test("P5.1 a token is told nowhere: not in a span, a log line or the worker's own address", async () => {
  const { engine, connect: open } = await stand("local");
  const token = await engine.tokens.issue({ kind: "entry", name: "gate" });
  const client = open(`/as/${token}`);
  await client.trigger("state::set", { scope: "s", key: "k", value: 1 });
  expect(JSON.stringify(await client.trigger("engine::workers::list", {}))).not.toContain(token);
  expect(wsDialer(`ws://127.0.0.1:1/as/${token}`).address).toBe("ws://127.0.0.1:1");
});

test("P5.2 the operator's key decides over a socket and over HTTP; without it nobody does, whatever route was bound", async () => {
  const { engine, servers, connect: open } = await stand("local");
  const gate = open(`/as/${await engine.tokens.issue({ kind: "entry", name: "gate" })}`);
  gate.registerFunction("approval::resolve", () => ({ status_code: 200, body: { ok: true } }));
  gate.registerTrigger({ type: "http", function_id: "approval::resolve", config: { api_path: "/decide", http_method: "POST" } });
  await gate.trigger("engine::registered-triggers::list", {});
  const key = await engine.tokens.issue({ kind: "operator", name: "anna" });
  await expect(open().trigger("approval::resolve", {})).rejects.toMatchObject({ code: "FORBIDDEN" });
  expect(await open(`/as/${key}`).trigger("approval::resolve", {})).toMatchObject({ status_code: 200 });
  const url = `http://127.0.0.1:${servers.httpPort}/decide`;
  expect((await fetch(url, { method: "POST" })).status).toBe(403);
  expect((await fetch(url, { method: "POST", headers: { authorization: "Bearer of-somebody-else" } })).status).toBe(403);
  expect((await fetch(url, { method: "POST", headers: { authorization: `Bearer ${key}` } })).status).toBe(200);
});

test("P5.3 where a token is required nobody gets in without one, but to /healthz; a Host is this machine's or an allowed one", async () => {
  const { engine, servers, connect: open } = await stand("required");
  const token = await engine.tokens.issue({ kind: "entry", name: "gate" });
  for (const path of ["/", "/otel", "/ws"]) expect([path, await dial(servers.port, path)]).toEqual([path, 401]);
  expect(await dial(servers.httpPort, "/ws")).toBe(401);
  expect(await dial(servers.port, `/as/${token}`)).toBe("open");
  const worker = open(`/as/${token}`);
  worker.registerFunction("hello::web", () => ({ status_code: 200, body: "hello" }));
  worker.registerTrigger({ type: "http", function_id: "hello::web", config: { api_path: "/hello", http_method: "GET" } });
  await worker.trigger("engine::registered-triggers::list", {});
  const url = `http://127.0.0.1:${servers.httpPort}`;
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  const refused = await fetch(`${url}/hello`);
  expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  expect((await fetch(`${url}/hello`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
  expect(await dial(servers.port, `/as/${token}`, { host: "bus.example" })).toBe("open");
  expect(await dial(servers.port, `/as/${token}`, { host: "evil.example" })).toBe(403);
});

test("P5.3 a listener that others reach takes tokens, and knows the names by which it is reached", () => {
  const reach = (more: object) => () => defaultEngineConfig({ host: "0.0.0.0", ...more });
  expect(reach({})).toThrow(/unless engine.auth is 'required'/);
  expect(reach({ auth: "required" })).toThrow(/needs engine.allowed_hosts/);
  expect(reach({ auth: "required", allowed_hosts: ["bus.example"] })().host).toBe("0.0.0.0");
});
