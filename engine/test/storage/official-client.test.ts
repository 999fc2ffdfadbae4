// State, streams, queues and topics as the published client uses them, over real sockets and SQLite.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, systemClock, systemRandom } from "@iii/sdk";
import { registerWorker } from "iii-sdk";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { catalogueBuiltin } from "../../src/builtin/catalogue/register.ts";
import { storageBuiltins } from "../../src/builtin/storage/register.ts";
import { defaultEngineConfig } from "../../src/config.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import type { Store } from "../../src/ports/store.ts";
import { createSqliteStore } from "../../src/storage/sqlite.ts";
import { attachBus } from "../../src/transport/ws.ts";

process.env["OTEL_ENABLED"] = "false";

type Sdk = ReturnType<typeof registerWorker>;
let engine: Engine;
let server: Server;
let store: Store;
let folder = "";
let sdk: Sdk;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "official-"));
  const config = defaultEngineConfig({
    queues: {
      "test-sequential": { concurrency: 1 },
      "test-fifo-groups": { type: "fifo", message_group_field: "group_id" },
    },
  });
  store = createSqliteStore({ folder });
  const deps = { clock: systemClock, random: systemRandom, store, log: silentLogger };
  const builtins = [catalogueBuiltin(), ...storageBuiltins({ queues: config.queues, publish: () => undefined })];
  engine = createEngine({ config, deps, builtins });
  await engine.start();
  server = createServer((_request, response) => response.writeHead(426).end());
  attachBus(server, engine, { allowOrigin: (origin) => origin === undefined });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  sdk = registerWorker(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

afterEach(async () => {
  await sdk.shutdown();
  await engine.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const call = (function_id: string, payload: object) => sdk.trigger<object, unknown>({ function_id, payload });
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 5_000, interval: 5 });

test("a state trigger followed at once by a write on the same connection fires", async () => {
  const seen: unknown[] = [];
  await call("state::set", { scope: "s", key: "k", value: { a: 1 } });
  sdk.registerFunction("on::state", async (event: unknown) => {
    seen.push(event);
  });
  sdk.registerTrigger({ type: "state", function_id: "on::state", config: { scope: "s", key: "k" } });
  await call("state::set", { scope: "s", key: "k", value: { a: 2 } });
  await eventually(() => expect(seen).toHaveLength(1));
  expect(seen[0]).toMatchObject({ type: "state", event_type: "state:updated", old_value: { a: 1 }, new_value: { a: 2 } });
  await call("state::update", { scope: "s", key: "log", ops: [{ type: "append", path: "lines", value: "x" }] });
  expect(await call("state::list_groups", {})).toEqual({ groups: ["s"] });
  expect(await call("state::list", { scope: "s" })).toEqual([{ a: 2 }, { lines: "x" }]);
});

test("stream updates merge by key and by nested path", async () => {
  const item = { stream_name: "st", group_id: "g", item_id: "i" };
  await call("stream::set", { ...item, data: { a: 1 } });
  const ops = [
    { type: "merge", path: "meta", value: { b: 2 } },
    { type: "merge", path: ["deep", "er"], value: { c: 3 } },
    { type: "append", path: "list", value: { d: 4 } },
  ];
  const answer = (await call("stream::update", { ...item, ops })) as { errors?: unknown[]; new_value: unknown };
  expect(answer.errors ?? []).toEqual([]);
  expect(answer.new_value).toEqual({ a: 1, meta: { b: 2 }, deep: { er: { c: 3 } }, list: [{ d: 4 }] });
});

test("enqueued work arrives in order, per group for fifo, and answers a receipt", async () => {
  const seen: { group_id: string; n: number }[] = [];
  sdk.registerFunction("work::on", async (input: { group_id: string; n: number }) => {
    seen.push(input);
  });
  for (const queue of ["test-sequential", "test-fifo-groups"]) {
    seen.length = 0;
    for (let n = 0; n < 6; n += 1) {
      const payload = { group_id: n % 2 === 0 ? "even" : "odd", n };
      const receipt = await sdk.trigger<object, unknown>({ function_id: "work::on", payload, action: { type: "enqueue", queue } });
      expect(receipt).toEqual({ messageReceiptId: expect.any(String) });
    }
    await eventually(() => expect(seen).toHaveLength(6));
    for (const group of ["even", "odd"]) {
      const own = seen.filter(({ group_id }) => group_id === group).map(({ n }) => n);
      expect(own).toEqual(own.toSorted());
    }
  }
  const lost = sdk.trigger({ function_id: "work::on", payload: {}, action: { type: "enqueue", queue: "missing" } });
  await expect(lost).rejects.toMatchObject({ code: "enqueue_error" });
});

test("a durable subscriber gets exactly what was published, each subscribed function once, filtered by its condition", async () => {
  const seen: unknown[] = [];
  sdk.registerFunction("sub::one", async (input: unknown) => void seen.push(["one", input]));
  sdk.registerFunction("sub::two", async (input: unknown) => void seen.push(["two", input]));
  sdk.registerFunction("sub::only_big", async (input: { n: number }) => input.n > 1);
  sdk.registerTrigger({
    type: "durable:subscriber",
    function_id: "sub::one",
    config: { topic: "t", queue_config: { maxRetries: 5, type: "standard" } },
  });
  const filtered = { topic: "t", condition_function_id: "sub::only_big" };
  sdk.registerTrigger({ type: "durable:subscriber", function_id: "sub::two", config: filtered });
  for (const n of [1, 2]) expect(await call("iii::durable::publish", { topic: "t", data: { n } })).toBeUndefined();
  await eventually(() => expect(seen).toHaveLength(3));
  expect(seen).toEqual(
    expect.arrayContaining([
      ["one", { n: 1 }],
      ["one", { n: 2 }],
      ["two", { n: 2 }],
    ]),
  );
});
