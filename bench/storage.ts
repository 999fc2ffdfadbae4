// Durable state and queues over the bus, beside bare SQLite with the same promise on the same disk. Prints ratios; gates on nothing.
// node bench/storage.ts [--rounds 5] [--ms 600]
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type Iii } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { type Call, inFlight, inTurns, type Latency, median, quantile, type Rate, sequential, settings } from "./support/load.ts";
import { type Role, start } from "./support/processes.ts";
import { digits, goals, head, table } from "./support/report.ts";

const LANES = 64;
const CASES = [
  "SQLite FULL, 1 per commit",
  "SQLite FULL, 64 in flight, one commit per turn of the loop",
  "SQLite read",
  "call that ends in the engine",
  "the same from a bystander's process",
  "state::get",
  "state::set, 1 in flight",
  "state::set, 64 in flight",
  "queue, idle: enqueue to handler",
  "queue, 64 in flight: enqueue to handled",
] as const;
type Case = (typeof CASES)[number];
type Figures = Partial<Latency & Rate & { delay: number; disturbed: number; perCommit: number }>;

interface Parts {
  readonly engine: Role;
  readonly disk: Role;
  readonly bystander: Role;
  readonly iii: Iii;
  readonly jobs: Jobs;
  readonly ms: number;
}

const filling = "x".repeat(1_000);

/** Puts jobs on the queue and hears when their handler starts. */
class Jobs {
  readonly #iii: Iii;
  readonly #waiting = new Map<number, (at: number) => void>();

  constructor(producer: Iii, consumer: Iii) {
    this.#iii = producer;
    consumer.registerFunction("bench::job", (input) => {
      const { n } = input as { n: number };
      this.#waiting.get(n)?.(performance.now());
      this.#waiting.delete(n);
    });
  }

  /** ms from the call that enqueues to the start of the handler. */
  async one(n: number): Promise<number> {
    const from = performance.now();
    const handled = new Promise<number>((resolve) => this.#waiting.set(n, resolve));
    await this.#iii.trigger("bench::job", { n, filling }, { action: { type: "enqueue", queue: "jobs" } });
    return (await handled) - from;
  }
}

const set =
  (iii: Iii): Call =>
  (n) =>
    iii.trigger("state::set", { scope: "bench", key: `key-${n % 1_000}`, value: { n, filling } });

const get =
  (iii: Iii): Call =>
  async (n) => {
    const value = await iii.trigger<{ n: number }>("state::get", { scope: "bench", key: `key-${n % 1_000}` });
    if (value.n % 1_000 !== n % 1_000) throw new Error(`state::get of ${n} answered ${value.n}`);
  };

/** 64 writes in flight, with the engine's loop delay and the calls of a bystander while they run. */
async function writeBusily({ engine, bystander, iii, ms }: Parts): Promise<Figures> {
  const trips = bystander.ask<number[]>("roundTrips");
  const before = await engine.ask<number>("commits");
  await engine.ask("watchDelay");
  const rate = await inFlight(set(iii), LANES, ms);
  const delay = await engine.ask<number>("delay");
  const perCommit = rate.count / ((await engine.ask<number>("commits")) - before);
  return { ...rate, delay, perCommit, disturbed: quantile(await trips, 0.99) };
}

/** One job after the other; what is timed ends when the handler starts, not when its acknowledgement is on disk. */
async function deliverIdly({ jobs, ms }: Parts): Promise<Figures> {
  const seen: number[] = [];
  await sequential(async (n) => seen.push((await jobs.one(n)) * 1_000), ms);
  return { p50: median(seen), p99: quantile(seen, 0.99) };
}

const RUN: Record<Case, (parts: Parts) => Promise<Figures>> = {
  "SQLite FULL, 1 per commit": ({ disk }) => disk.ask("alone"),
  "SQLite FULL, 64 in flight, one commit per turn of the loop": ({ disk }) => disk.ask("together"),
  "SQLite read": ({ disk }) => disk.ask("read"),
  "call that ends in the engine": ({ iii, ms }) => sequential((n) => iii.trigger("bench::inside", { n, filling }), ms),
  "the same from a bystander's process": async ({ bystander }) => {
    const seen = await bystander.ask<number[]>("roundTrips");
    return { p50: median(seen), p99: quantile(seen, 0.99) };
  },
  "state::get": ({ iii, ms }) => sequential(get(iii), ms),
  "state::set, 1 in flight": ({ iii, ms }) => sequential(set(iii), ms),
  "state::set, 64 in flight": writeBusily,
  "queue, idle: enqueue to handler": deliverIdly,
  "queue, 64 in flight: enqueue to handled": ({ jobs, ms }) => inFlight((n) => jobs.one(n), LANES, ms),
};

type Seen = Record<Case, Figures[]>;

const mid = (seen: Seen, name: Case, key: keyof Figures): number => median(seen[name].map((one) => one[key] ?? Number.NaN));

function show(seen: Seen): void {
  const rows = CASES.map((name) => {
    const [p50, p99, rate] = (["p50", "p99", "per_second"] as const).map((key) => digits(mid(seen, name, key)));
    const per = rate === "–" ? digits(1e6 / mid(seen, name, "p50")) : rate;
    return [name, p50 ?? "", p99 ?? "", per ?? ""];
  });
  table(["1 KB values", "p50 µs", "p99 µs", "per second"], rows);
}

function judge(seen: Seen): void {
  const alone = mid(seen, "SQLite FULL, 1 per commit", "p50");
  const inside = mid(seen, "call that ends in the engine", "p50");
  const busy = "state::set, 64 in flight";
  const quietP99 = mid(seen, "the same from a bystander's process", "p99");
  const rate = (name: Case): number => mid(seen, name, "per_second");
  const jobs = rate("queue, 64 in flight: enqueue to handled");
  const grouped = rate("SQLite FULL, 64 in flight, one commit per turn of the loop");
  goals([
    {
      number: "9",
      what: "state::set FULL to SQLite alone + a call into the engine",
      value: mid(seen, "state::set, 1 in flight", "p50") / (alone + inside),
      must: 1.3,
    },
    {
      number: "10",
      what: "state::set FULL, 64 in flight, to SQLite 1 per commit",
      value: rate(busy) / (1e6 / alone),
      must: 10,
      less: false,
    },
    { number: "11", what: "state::get to a call that ends in the engine", value: mid(seen, "state::get", "p50") / inside, must: 1.1 },
    {
      number: "13",
      what: "idle queue, enqueue to handler p50",
      value: mid(seen, "queue, idle: enqueue to handler", "p50") / 1_000,
      must: 2,
      unit: "ms",
    },
    { number: "14", what: "a bystander's round trip p99 under 64 writes to idle", value: mid(seen, busy, "disturbed") / quietP99, must: 3 },
    { number: "14", what: "loop delay p99 under 64 writes", value: mid(seen, busy, "delay"), must: 3, unit: "ms" },
  ]);
  process.stdout.write(
    `\nwrites per commit at 64 in flight: ${digits(mid(seen, busy, "perCommit"), 1)}; ` +
      `queue FULL at 64 in flight: ${digits(jobs)} jobs/s, ${digits(jobs / grouped, 2)} × the grouped floor, ${digits(jobs / (1e6 / alone), 1)} × 1 per commit ` +
      "(goal 12 names brokers that are not part of this run)\n",
  );
}

async function main(folder: string): Promise<void> {
  const { rounds, ms } = settings(5, 600);
  for (const name of ["engine", "floor"]) mkdirSync(join(folder, name));
  await using disk = await start("disk", join(folder, "floor"), String(ms));
  await using engine = await start("engine", join(folder, "engine"));
  const url = String(engine.up["url"]);
  await using bystander = await start("worker", "bus", url);
  const [iii, consumer] = [connect({ dialer: wsDialer(url) }), connect({ dialer: wsDialer(url) })];
  const parts: Parts = { engine, disk, bystander, iii, jobs: new Jobs(iii, consumer), ms };
  head("Storage", `${rounds} rounds in turns, ${ms} ms per sample, floor's PRAGMA synchronous=${disk.up["synchronous"]} (2 is FULL)`);
  const seen = Object.fromEntries(CASES.map((name) => [name, [] as Figures[]])) as Seen;
  await Promise.all(Array.from({ length: 1_000 }, (_, n) => set(iii)(n)));
  for (const name of CASES) await RUN[name](parts);
  await inTurns(rounds, CASES, async (name) => void seen[name].push(await RUN[name](parts)));
  show(seen);
  judge(seen);
  await Promise.all([iii.close({ drain_ms: 0 }), consumer.close({ drain_ms: 0 })]);
}

const folder = mkdtempSync(join(tmpdir(), "iii-bench-"));
try {
  await main(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
