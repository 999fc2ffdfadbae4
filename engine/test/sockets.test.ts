// Over real sockets: a reader that stops reading, and frames that break the rules.
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { createEngine, createMemoryStore, defaultBuiltins, type Engine, upgradeHandler } from "@iii/engine";
import { connect, silentLogger, systemClock, systemRandom } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { defaultEngineConfig } from "../src/config.ts";

const MB = 1_048_576;
let engine: Engine;
let server: Server;
let url = "";

beforeEach(async () => {
  const config = defaultEngineConfig({ store: "memory", limits: { slow_consumer_ms: 300, max_buffered_bytes: MB } });
  const deps = { clock: systemClock, random: systemRandom, store: createMemoryStore(), log: silentLogger };
  engine = createEngine({ config, deps, builtins: defaultBuiltins(config) });
  await engine.start();
  server = createServer().on("upgrade", upgradeHandler(engine));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  await engine.stop();
  await new Promise((resolve) => server.close(resolve));
});

function opened(): Promise<WebSocket> {
  const ws = new WebSocket(url);
  ws.on("error", () => {});
  return new Promise((resolve) => ws.once("open", () => resolve(ws)));
}

const call = (function_id: string, data: unknown, action?: object) =>
  JSON.stringify({ type: "invokefunction", invocation_id: crypto.randomUUID(), function_id, action, data });

test("a reader that stops reading holds its senders back, is dropped, and costs nobody else anything", async () => {
  const reader = await opened();
  const flooder = await opened();
  const ours = connect({ dialer: wsDialer(url) });
  try {
    reader.send(JSON.stringify({ type: "registerfunction", id: "slow::fn" }));
    await ours.trigger("engine::functions::list", {});
    reader.pause();
    const text = "x".repeat(MB);
    for (let n = 0; n < 60; n += 1) flooder.send(call("slow::fn", { text }, { type: "void" }));
    expect(await ours.trigger("state::set", { scope: "a", key: "b", value: 1 })).toEqual({ old_value: null, new_value: 1 });
    const stillServed = () => engine.host.isServed("slow::fn");
    while (stillServed()) await new Promise((resolve) => setImmediate(resolve));
    expect(await ours.trigger("state::get", { scope: "a", key: "b" })).toBe(1);
  } finally {
    reader.terminate();
    flooder.terminate();
    await ours.close({ drain_ms: 0 });
  }
});

test("a binary frame with text that is not UTF-8 never reaches another socket", async () => {
  const worker = await opened();
  const caller = await opened();
  const got: string[] = [];
  worker.on("message", (data) => got.push(data.toString()));
  worker.send(JSON.stringify({ type: "registerfunction", id: "a::b" }));
  const poisoned = Buffer.concat([
    Buffer.from('{"type":"invokefunction","function_id":"a::b","data":"'),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('"}'),
  ]);
  caller.send(poisoned, { binary: true });
  caller.send(call("a::b", "clean"));
  while (!got.some((frame) => frame.includes("clean"))) await new Promise((resolve) => setImmediate(resolve));
  expect(got.filter((frame) => frame.includes("invokefunction"))).toHaveLength(1);
  expect(worker.readyState).toBe(WebSocket.OPEN);
  worker.terminate();
  caller.terminate();
});

/** A text or closing frame as a client sends it: masked, here with zeros. */
function clientFrame(opcode: number, payload: Buffer): Buffer {
  const size =
    payload.length < 126 ? Buffer.from([0x80 | payload.length]) : Buffer.from([0xfe, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([Buffer.from([0x80 | opcode]), size, Buffer.alloc(4), payload]);
}

test.each([
  ["with a code", Buffer.from([0x03, 0xe8])],
  ["without one", Buffer.alloc(0)],
])("K11.1 a connection ends when its Close frame (%s) is read, however long its TCP connection stays", async (_title, closing) => {
  const { port } = server.address() as AddressInfo;
  const raw = connectTcp({ port, host: "127.0.0.1", allowHalfOpen: true });
  const ours = connect({ dialer: wsDialer(url) });
  try {
    raw.write(
      `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n`,
    );
    const text = (frame: object) => clientFrame(1, Buffer.from(JSON.stringify(frame)));
    raw.write(text({ type: "registerfunction", id: "bye::fn" }));
    raw.write(text({ type: "registertrigger", id: "bye", trigger_type: "late-type", function_id: "bye::fn", config: {} }));
    while (!engine.host.isServed("bye::fn")) await new Promise((resolve) => setImmediate(resolve));
    expect(engine.host.registry.bindings()).toHaveLength(1);
    // What stands behind the Close frame is nobody's.
    raw.write(Buffer.concat([clientFrame(8, closing), text({ type: "registerfunction", id: "ghost::fn" })]));
    while (engine.host.isServed("bye::fn")) await new Promise((resolve) => setImmediate(resolve));
    expect(raw.destroyed || raw.writableEnded).toBe(false);
    expect(engine.host.registry.bindings()).toEqual([]);
    await ours.trigger("engine::functions::list", {});
    expect(engine.host.isServed("ghost::fn")).toBe(false);
  } finally {
    raw.destroy();
    await ours.close({ drain_ms: 0 });
  }
});
