import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type SpanNode, tracesGroupBy, tracesTree } from "@iii/engine/contract";
import { BusError, type Client, connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { type Listening, listeningEngine } from "./fixtures/listening.ts";

const WORKER = join(import.meta.dirname, "fixtures/echo-worker.ts");

let engine: Listening;
let url: string;
let iii: Client;
const children: ChildProcess[] = [];

beforeEach(async () => {
  engine = await listeningEngine();
  url = engine.url;
  iii = connect({ dialer: wsDialer(url) });
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await iii.close({ drain_ms: 0 });
  await engine.stop();
});

function start(env: Record<string, string> = {}, args: string[] = [], file = WORKER): { child: ChildProcess; output: () => string } {
  const child = spawn(process.execPath, [file, ...args], {
    env: { ...process.env, III_URL: url, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  children.push(child);
  let output = "";
  const collect = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  return { child, output: () => output };
}

/** Asks until the answer is as wanted; each question waits for the engine. */
async function eventually<T>(ask: () => Promise<T>, wanted: (value: T) => boolean): Promise<T> {
  for (let tries = 0; tries < 400; tries += 1) {
    const value = await ask();
    if (wanted(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("it did not come to be");
}

const call = (payload: object) =>
  iii.trigger<{ text: string }>("echo::run", payload).catch((error: unknown) => (error instanceof BusError ? error.code : "?"));
const serving = () =>
  eventually(
    () => call({ text: "a" }),
    (answer) => answer !== "function_not_found",
  );

test("a worker process serves with its config, and SIGTERM ends it with 0", async () => {
  const { child } = start({ III_WORKER_CONFIG: JSON.stringify({ suffix: "!" }) });
  expect(await serving()).toEqual({ text: "a!" });
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(await call({ text: "a" })).toBe("function_not_found");
});

test.each([
  ["a config that does not fit", { III_WORKER_CONFIG: '{"suffix":7}' }, [], /config\.suffix/],
  ["a config that is not JSON", { III_WORKER_CONFIG: "{" }, [], /config_invalid/],
  ["an unknown flag", {}, ["--nope"], /--nope/],
])("%s ends the process with 1 and the reason", async (_title, env, args, reason) => {
  const { child, output } = start(env, args);
  expect(await once(child, "close")).toEqual([1, null]);
  expect(output()).toMatch(/worker 'echo' cannot start/);
  expect(output()).toMatch(reason);
});

test("--manifest prints the name and the schema of the config", async () => {
  const { child, output } = start({}, ["--manifest"]);
  expect(await once(child, "close")).toEqual([0, null]);
  expect(JSON.parse(output())).toMatchObject({ name: "echo", config: { properties: { suffix: { type: "string" } } } });
});

test("a supervised worker ends when its supervisor is gone", async () => {
  const { child } = start({ III_SUPERVISED: "1" });
  await serving();
  child.stdin?.end();
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("a worker killed in the middle of a call: the caller learns it at once, and its span is closed as lost", async () => {
  const { child } = start();
  await serving();
  await call({ text: "a", session_id: "s1", message_id: "m1" });
  const hanging = call({ text: "a", session_id: "s1", message_id: "m1", hang: true });
  const groups = () => iii.trigger(tracesGroupBy, { attribute: "iii.session.id" });
  await eventually(groups, ({ groups: [group] }) => group?.span_count === 2);
  child.kill("SIGKILL");
  expect(await hanging).toBe("invocation_stopped");
  const [group] = (await eventually(groups, ({ groups: [found] }) => found?.error_count === 1)).groups;
  const trees = await Promise.all((group?.trace_ids ?? []).map((trace_id) => iii.trigger(tracesTree, { trace_id })));
  expect(trees.every(({ roots }) => roots.length === 1)).toBe(true);
  const spans = trees.flatMap(({ roots }) => roots);
  expect(spans.map((span) => [span.name, span.service_name, span.status]).sort()).toEqual([
    ["execute echo::run", "echo", "error"],
    ["execute echo::run", "echo", "ok"],
  ]);
});

test("a worker's own OpenTelemetry SDK sends to the engine, and its spans stand in the tree of the call", async () => {
  const { output } = start({}, [], join(import.meta.dirname, "fixtures/instrumented-worker.ts"));
  const input = { session_id: "s1", message_id: "m1" };
  const answer = () => iii.trigger("instrumented::run", input).catch(() => undefined);
  expect(await eventually(answer, (value) => value !== undefined), output()).toEqual({ ok: true });
  const named = (spans: readonly SpanNode[]): unknown =>
    spans.map((span) => [span.name, span.service_name, ...(span.children.length === 0 ? [] : [named(span.children)])]);
  const wanted = [["execute instrumented::run", "instrumented", [["work", "own-otel", [["execute instrumented::inner", "instrumented"]]]]]];
  const tree = async () => {
    const { groups } = await iii.trigger(tracesGroupBy, { attribute: "iii.session.id" });
    return (await iii.trigger(tracesTree, { trace_id: groups[0]?.trace_ids[0] ?? "none" })).roots;
  };
  const roots = await eventually(tree, (found) => JSON.stringify(named(found)) === JSON.stringify(wanted));
  expect(roots[0]?.children[0]?.attributes).toContainEqual(["rows", "3"]);
});

test("a peer that is connected but shows no life is given up, and calls on it fail", async () => {
  const frozen = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: false });
  await once(frozen, "listening");
  const dialer = wsDialer(`ws://127.0.0.1:${(frozen.address() as AddressInfo).port}`, { ping_ms: 20 });
  const client = connect({ dialer });
  await expect(client.trigger("x::y")).rejects.toMatchObject({ code: "disconnected" });
  await client.close();
  for (const socket of frozen.clients) socket.terminate();
  frozen.close();
});

test("a channel carries large frames in order, with the sender held back, over real sockets", async () => {
  const other = connect({ dialer: wsDialer(url) });
  const channel = await iii.createChannel({ buffer_size: 4 });
  const reader = other.openReader(channel.readerRef);
  const sending = (async () => {
    for (let n = 0; n < 200; n += 1) await channel.writer.send(new Uint8Array(100_000).fill(n));
    await channel.writer.close();
  })();
  let next = 0;
  for await (const frame of reader) {
    expect(typeof frame === "string" ? -1 : frame[99_999]).toBe(next);
    next += 1;
  }
  await sending;
  expect(next).toBe(200);
  await other.close();
});
