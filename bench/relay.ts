// A call through the engine, our client on both ends, beside the same call through a bare `ws` relay. Prints ratios; gates on nothing.
// node bench/relay.ts [--rounds 5] [--ms 600]
import { randomBytes } from "node:crypto";
import { connect, type Iii } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { WebSocket } from "ws";
import { type Call, inFlight, inTurns, median, sequential, settings } from "./support/load.ts";
import { checkSeq, payloads, SIZES } from "./support/payload.ts";
import { type Role, start } from "./support/processes.ts";
import { digits, goals, head, table } from "./support/report.ts";

const LANES = 64;
/** The first samples, this much longer and not kept: a compiler needs some ten thousand calls to be done with our code. */
const WARM = 5;
type Send = (data: unknown) => Promise<unknown>;

interface Variant {
  readonly name: "raw ws relay" | "engine + SDK" | "the same, every call traced";
  readonly broker: Role;
  readonly send: Send;
}

interface Sample {
  readonly p50: number;
  readonly p99: number;
  readonly per_second: number;
  /** µs of the broker's CPU per call, one at a time … */
  readonly cpuAlone: number;
  /** … and with calls in flight. */
  readonly cpu: number;
}

function relayCaller(url: string): Promise<Send> {
  const socket = new WebSocket(`${url}/caller`, { perMessageDeflate: false });
  const waiting = new Map<number, (data: unknown) => void>();
  let last = 0;
  socket.on("message", (frame) => {
    const { id, data } = JSON.parse(frame.toString()) as { id: number; data: unknown };
    waiting.get(id)?.(data);
    waiting.delete(id);
  });
  const send: Send = (data) =>
    new Promise((resolve) => {
      last += 1;
      waiting.set(last, resolve);
      socket.send(JSON.stringify({ id: last, data }));
    });
  return new Promise((resolve, reject) => {
    socket.on("open", () => resolve(send));
    socket.on("error", reject);
  });
}

function tracedCaller(iii: Iii): Send {
  return (data) =>
    iii.trigger("bench::traced", data, { traceparent: `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01` });
}

async function measure(variant: Variant, call: Call, ms: number): Promise<Sample> {
  const used = (): Promise<number> => variant.broker.ask<number>("cpu");
  const start = await used();
  const { p50, p99, count: alone } = await sequential(call, ms);
  const between = await used();
  const { per_second, count } = await inFlight(call, LANES, ms);
  return { p50, p99, per_second, cpuAlone: (between - start) / alone, cpu: ((await used()) - between) / count };
}

async function measureSize(
  size: keyof typeof SIZES,
  variants: readonly Variant[],
  rounds: number,
  ms: number,
): Promise<Map<string, Sample[]>> {
  const make = payloads(SIZES[size]);
  const seen = new Map<string, Sample[]>(variants.map(({ name }) => [name, []]));
  const run = async (variant: Variant, keep: boolean): Promise<void> => {
    const call: Call = async (seq) => checkSeq(await variant.send(make(seq)), seq);
    const sample = await measure(variant, call, keep ? ms : ms * WARM);
    if (keep) seen.get(variant.name)?.push(sample);
  };
  for (const variant of variants) await run(variant, false);
  await inTurns(rounds, variants, (variant) => run(variant, true));
  return seen;
}

const mid = (samples: readonly Sample[] | undefined, key: keyof Sample): number => median((samples ?? []).map((one) => one[key]));
/** The best round: other work on the machine only ever adds time. */
function best(samples: readonly Sample[] | undefined, key: keyof Sample): number {
  const values = (samples ?? []).map((one) => one[key]);
  return key === "per_second" ? Math.max(...values) : Math.min(...values);
}

type Ratio = (name: Variant["name"], key: keyof Sample, base?: Variant["name"]) => { medians: number; bests: number };

function ratios(seen: Map<string, Sample[]>): Ratio {
  return (name, key, base = "raw ws relay") => ({
    medians: mid(seen.get(name), key) / mid(seen.get(base), key),
    bests: best(seen.get(name), key) / best(seen.get(base), key),
  });
}

function show(size: string, seen: Map<string, Sample[]>): void {
  const ratio = ratios(seen);
  const both = ({ medians, bests }: { medians: number; bests: number }): string => `${digits(medians, 2)} / ${digits(bests, 2)}`;
  const columns = [
    size,
    "RTT p50 µs",
    "× raw (median / best)",
    "p99 µs",
    "× raw",
    `calls/s @${LANES}`,
    "× raw",
    "broker CPU µs/call alone",
    `@${LANES}`,
  ];
  const rows = [...seen.keys()].map((key) => {
    const name = key as Variant["name"];
    const samples = seen.get(name);
    const [p50, p99, rate] = [ratio(name, "p50"), ratio(name, "p99"), ratio(name, "per_second")].map(both);
    return [
      name,
      digits(mid(samples, "p50")),
      p50,
      digits(mid(samples, "p99")),
      p99,
      digits(mid(samples, "per_second")),
      rate,
      digits(mid(samples, "cpuAlone"), 1),
      digits(mid(samples, "cpu"), 1),
    ].map(String);
  });
  table(columns, rows);
}

/** A goal is met by the ratio of medians or by the ratio of bests: missing both is a finding, one may be noise. */
const lower = ({ medians, bests }: { medians: number; bests: number }): number => Math.min(medians, bests);
const higher = ({ medians, bests }: { medians: number; bests: number }): number => Math.max(medians, bests);

function judge(results: Record<keyof typeof SIZES, Map<string, Sample[]>>): void {
  const [small, middle, large] = [ratios(results["100 B"]), ratios(results["10 KB"]), ratios(results["1 MB"])];
  const ours = "engine + SDK";
  const traced = "the same, every call traced";
  goals([
    { number: "1", what: "100 B, round trip p50 to raw", value: lower(small(ours, "p50")), must: 1.15 },
    { number: "2", what: "100 B, round trip p99 to raw", value: lower(small(ours, "p99")), must: 1.5 },
    { number: "3", what: "100 B, calls/s at 64 in flight to raw", value: higher(small(ours, "per_second")), must: 1.4, less: false },
    { number: "5", what: "100 B, engine CPU per call at 64", value: mid(results["100 B"].get(ours), "cpu"), must: 10, unit: "µs" },
    { number: "6", what: "10 KB, round trip p50 to raw", value: lower(middle(ours, "p50")), must: 1.2 },
    { number: "6", what: "10 KB, calls/s at 64 to raw", value: higher(middle(ours, "per_second")), must: 0.9, less: false },
    { number: "7", what: "1 MB, round trip p50 to raw", value: lower(large(ours, "p50")), must: 1.5 },
    { number: "7", what: "1 MB, engine CPU per call to the relay's", value: lower(large(ours, "cpu")), must: 1.6 },
    {
      number: "8",
      what: "100 B, calls/s at 64 traced to untraced",
      value: higher(small(traced, "per_second", ours)),
      must: 0.85,
      less: false,
    },
  ]);
}

async function main(): Promise<void> {
  const { rounds, ms } = settings(5, 600);
  await using relay = await start("relay");
  await using engine = await start("engine", "memory");
  const url = String(engine.up["url"]);
  await using _far = await start("worker", "relay", String(relay.up["url"]));
  await using _echo = await start("worker", "bus", url);
  await using _traced = await start("worker", "traced", url);
  const iii = connect({ dialer: wsDialer(url) });
  const raw: Variant = { name: "raw ws relay", broker: relay, send: await relayCaller(String(relay.up["url"])) };
  const ours: Variant = { name: "engine + SDK", broker: engine, send: (data) => iii.trigger("bench::echo", data) };
  const traced: Variant = { name: "the same, every call traced", broker: engine, send: tracedCaller(iii) };
  head("Relay", `${rounds} rounds in turns, ${ms} ms per sample, JSON on both ends`);
  const results = {
    "100 B": await measureSize("100 B", [raw, ours, traced], rounds, ms),
    "10 KB": await measureSize("10 KB", [raw, ours], rounds, ms),
    "1 MB": await measureSize("1 MB", [raw, ours], Math.min(rounds, 3), ms * 2),
  };
  for (const [size, seen] of Object.entries(results)) show(size, seen);
  judge(results);
  await iii.close({ drain_ms: 0 });
}

await main();
process.exit(0);
