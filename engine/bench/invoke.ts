// Round trips and calls per second through the engine with our client on both ends, beside a bare `ws` relay in the same rounds.
// node engine/bench/invoke.ts [--rounds 5]
import { type ChildProcess, fork } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createEngine, createMemoryStore, defaultBuiltins, upgradeHandler } from "@iii/engine";
import { connect, silentLogger, systemClock, systemRandom } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { WebSocket, WebSocketServer } from "ws";
import { defaultEngineConfig } from "../src/config.ts";

type Call = (data: unknown) => Promise<unknown>;

/** What a broker's process answers when it is asked for its CPU time. */
const reportCpu = (): void => {
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpu: user + system });
  });
};

const roles: Record<string, (arg: string) => Promise<void>> = {
  async engine() {
    const config = defaultEngineConfig({ storage: "memory" });
    const deps = { clock: systemClock, random: systemRandom, store: createMemoryStore(), log: silentLogger };
    const engine = createEngine({ config, deps, builtins: defaultBuiltins(config) });
    await engine.start();
    const server = createServer().on("upgrade", upgradeHandler(engine));
    server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
    reportCpu();
  },
  async relay() {
    const ends = new Map<string, WebSocket>();
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
    server.on("connection", (ws, request) => {
      const [own, other] = request.url === "/worker" ? ["worker", "caller"] : ["caller", "worker"];
      ends.set(own, ws);
      ws.on("message", (data, binary) => ends.get(other)?.send(data, { binary }));
    });
    server.on("listening", () => process.send?.({ port: (server.address() as AddressInfo).port }));
    reportCpu();
  },
  async worker(url) {
    const iii = connect({ dialer: wsDialer(url) });
    iii.registerFunction("bench::echo", (input) => input);
    await iii.trigger("engine::functions::list", {});
    process.send?.({ ready: true });
  },
  async rawWorker(url) {
    const ws = new WebSocket(`${url}/worker`, { perMessageDeflate: false });
    ws.on("message", (data) => ws.send(JSON.stringify(JSON.parse(data.toString()))));
    ws.on("open", () => process.send?.({ ready: true }));
  },
};

function start(role: string, arg = ""): ChildProcess {
  return fork(fileURLToPath(import.meta.url), [role, arg]);
}

function message<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve) => child.once("message", (value) => resolve(value as T)));
}

async function cpuOf(child: ChildProcess): Promise<number> {
  const answer = message<{ cpu: number }>(child);
  child.send("cpu");
  return (await answer).cpu;
}

function rawCaller(url: string): Promise<Call> {
  const ws = new WebSocket(`${url}/caller`, { perMessageDeflate: false });
  const waiting = new Map<number, (value: unknown) => void>();
  let next = 0;
  ws.on("message", (raw) => {
    const { id, data } = JSON.parse(raw.toString()) as { id: number; data: unknown };
    waiting.get(id)?.(data);
    waiting.delete(id);
  });
  const call: Call = (data) =>
    new Promise((resolve) => {
      next += 1;
      waiting.set(next, resolve);
      ws.send(JSON.stringify({ id: next, data }));
    });
  return new Promise((resolve) => ws.on("open", () => resolve(call)));
}

interface Sample {
  readonly us_per_call: number;
  readonly broker_cpu_us: number;
}

/** `count` calls with `lanes` in flight. */
async function sample(call: Call, broker: ChildProcess, data: unknown, lanes: number, count: number): Promise<Sample> {
  const cpu = await cpuOf(broker);
  const from = performance.now();
  let left = count;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await call(data);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const us = (performance.now() - from) * 1_000;
  return { us_per_call: us / count, broker_cpu_us: ((await cpuOf(broker)) - cpu) / count };
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

interface Case {
  readonly title: string;
  readonly data: unknown;
  readonly lanes: number;
  readonly count: number;
}

const CASES: readonly Case[] = [
  { title: "round trip, 100 B", data: { text: "x".repeat(80) }, lanes: 1, count: 2_000 },
  { title: "64 in flight, 100 B", data: { text: "x".repeat(80) }, lanes: 64, count: 10_000 },
  { title: "round trip, 1 MB", data: { text: "x".repeat(1_000_000) }, lanes: 1, count: 40 },
];

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
  const engine = start("engine");
  const relay = start("relay");
  const [{ port }, { port: rawPort }] = await Promise.all([message<{ port: number }>(engine), message<{ port: number }>(relay)]);
  const workers = [start("worker", `ws://127.0.0.1:${port}`), start("rawWorker", `ws://127.0.0.1:${rawPort}`)];
  await Promise.all(workers.map(message));
  const iii = connect({ dialer: wsDialer(`ws://127.0.0.1:${port}`) });
  const ours: Call = (data) => iii.trigger("bench::echo", data);
  const raw = await rawCaller(`ws://127.0.0.1:${rawPort}`);
  process.stdout.write(`node ${process.version}, load ${loadavg()[0]?.toFixed(2)}\n`);
  for (const { title, data, lanes, count } of CASES) {
    const seen: { ours: Sample[]; raw: Sample[] } = { ours: [], raw: [] };
    await sample(ours, engine, data, lanes, count);
    await sample(raw, relay, data, lanes, count);
    for (let round = 0; round < Number(values.rounds); round += 1) {
      seen.ours.push(await sample(ours, engine, data, lanes, count));
      seen.raw.push(await sample(raw, relay, data, lanes, count));
    }
    const mid = (samples: Sample[], key: keyof Sample) => median(samples.map((one) => one[key]));
    const [us, base] = [mid(seen.ours, "us_per_call"), mid(seen.raw, "us_per_call")];
    const best = Math.min(...seen.ours.map((one) => one.us_per_call)) / Math.min(...seen.raw.map((one) => one.us_per_call));
    const cpu = `${mid(seen.ours, "broker_cpu_us").toFixed(1)} µs beside ${mid(seen.raw, "broker_cpu_us").toFixed(1)} µs`;
    process.stdout.write(
      `${title}: ${us.toFixed(1)} µs per call beside ${base.toFixed(1)} µs (ratio of medians ${(us / base).toFixed(2)}, of bests ${best.toFixed(2)}); broker CPU ${cpu}\n`,
    );
  }
  await iii.close({ drain_ms: 0 });
  for (const child of [...workers, engine, relay]) child.disconnect();
}

const [role = "", arg = ""] = process.argv.slice(2);
const play = roles[role];
if (play !== undefined) {
  process.on("disconnect", () => process.exit(0));
  await play(arg);
} else await main();
