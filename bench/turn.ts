// A durable agent turn with one tool call through the whole stack of real processes, beside the same work done bare. Gates on nothing.
// node bench/turn.ts [--rounds 5] [--ms 1500]
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { processesOf, type Stack, startStack, until } from "../harness/e2e/support/stack.ts";
import { Agent, type Model } from "./support/agent.ts";
import { inFlight, inTurns, latencies, median, quantile, settings } from "./support/load.ts";
import { cpuMs, type Role, rssMb, start } from "./support/processes.ts";
import { digits, goals, head, table } from "./support/report.ts";
import { walCommits } from "./support/wal.ts";

const SESSIONS = 32;
const COUNTED_TURNS = 3;
/** A stack that has just started asks more often who serves what; turns are timed after that. */
const SETTLED_MS = 12_000;

const DEMO: Model = { provider: "scripted", model: "demo", text: 'call bench::echo {"text":"hello"}' };
const HTTP: Model = { provider: "anthropic", model: "claude-sonnet-5-5", text: "call the echo" };

interface Sample {
  readonly p50: number;
  readonly p99: number;
  readonly per_second: number;
  readonly cpu: number;
}

function sampleOf(seen: readonly number[], cpu: number): Sample {
  const total = seen.reduce((sum, us) => sum + us);
  return { p50: median(seen) / 1_000, p99: quantile(seen, 0.99) / 1_000, per_second: (seen.length * 1e6) / total, cpu: cpu / seen.length };
}

const cpuOf = (stack: Stack): number => processesOf(stack.folder).reduce((sum, pid) => sum + cpuMs(pid), 0);

async function bareTurns(floor: Role): Promise<Sample> {
  const before = cpuMs(floor.pid);
  const seen = await floor.ask<number[]>("turns");
  return sampleOf(seen, cpuMs(floor.pid) - before);
}

async function stackTurns(stack: Stack, agent: Agent, model: Model, ms: number): Promise<Sample> {
  const before = cpuOf(stack);
  let last = "";
  const seen = await latencies(
    async () => {
      last = await agent.turn(model);
    },
    ms,
    10,
  );
  const sample = sampleOf(seen, cpuOf(stack) - before);
  await agent.check(last);
  return sample;
}

/** Commits and bytes of the log per turn; counted again when the log was started over meanwhile. */
async function diskPerTurn(stack: Stack, agent: Agent): Promise<{ commits: number; bytes: number }> {
  const log = join(stack.folder, "data/engine.db-wal");
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const before = walCommits(log);
    for (let turn = 0; turn < COUNTED_TURNS; turn += 1) await agent.turn(DEMO);
    const after = walCommits(log);
    const per = (key: "commits" | "bytes"): number => (after[key] - before[key]) / COUNTED_TURNS;
    if (after.generation === before.generation) return { commits: per("commits"), bytes: per("bytes") };
  }
  return { commits: Number.NaN, bytes: Number.NaN };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

interface Boot {
  readonly answered: number;
  readonly healthy: number;
}

/** Starts the stack; how long until the first call is answered, and until every worker is ready. */
async function boot(env: Record<string, string>): Promise<{ stack: Stack; boot: Boot }> {
  const port = await freePort();
  const from = performance.now();
  const first = connect({ dialer: wsDialer(`ws://127.0.0.1:${port}`), reconnect: { initial_ms: 5, max_ms: 5 } });
  const answered = first.trigger("engine::functions::list", {}).then(() => performance.now() - from);
  const tool = fileURLToPath(new URL("roles/tool.ts", import.meta.url));
  const stack = await startStack({
    ready: false,
    config: (shipped) => `${shipped}\n  - name: bench-tool\n    command: ${JSON.stringify([process.execPath, tool])}\n`,
    permissions: "version: 1\nrules:\n  - bench::echo\n",
    env: { ...env, III_PORT: String(port) },
  });
  await until("every worker to be ready", async () => (await stack.health()).status === 200 || undefined);
  const healthy = performance.now() - from;
  const times = { answered: await answered, healthy };
  await first.close({ drain_ms: 0 });
  return { stack, boot: times };
}

const VARIANTS = ["bare SSE + 4 SQLite commits FULL", "the stack, demo model", "the stack, model over HTTP"] as const;
type Variant = (typeof VARIANTS)[number];
type Seen = Record<Variant, Sample[]>;
const mid = (samples: readonly Sample[], key: keyof Sample): number => median(samples.map((one) => one[key]));
const best = (samples: readonly Sample[], key: keyof Sample): number => Math.min(...samples.map((one) => one[key]));

function show(seen: Seen): void {
  const bare = seen[VARIANTS[0]];
  const rows = VARIANTS.map((name) => {
    const own = seen[name];
    const ratio = `${digits(mid(own, "p50") / mid(bare, "p50"), 2)} / ${digits(best(own, "p50") / best(bare, "p50"), 2)}`;
    const figures = [
      digits(mid(own, "p50"), 2),
      ratio,
      digits(mid(own, "p99"), 1),
      digits(mid(own, "per_second")),
      digits(mid(own, "cpu"), 1),
    ];
    return [name, ...figures];
  });
  table(["one turn, one tool call", "ms p50", "× bare (median / best)", "ms p99", "turns/s", "CPU ms per turn, all processes"], rows);
}

interface Facts {
  readonly boot: Boot;
  readonly rss: { readonly engine: number; readonly host: number };
  readonly disk: { readonly commits: number; readonly bytes: number };
  readonly busy: number;
}

function judge(seen: Seen, { boot: times, rss, disk, busy }: Facts): void {
  const [bare, demo, http] = VARIANTS.map((name) => seen[name]) as [Sample[], Sample[], Sample[]];
  const ratio = (samples: Sample[]): number => Math.min(mid(samples, "p50") / mid(bare, "p50"), best(samples, "p50") / best(bare, "p50"));
  goals([
    { number: "15", what: "turn to bare, demo model", value: ratio(demo), must: 2 },
    { number: "15", what: "turn to bare, model over HTTP", value: ratio(http), must: 2 },
    { number: "17", what: "CPU per turn over all processes, demo model", value: mid(demo, "cpu"), must: 4, unit: "ms" },
    { number: "18", what: "start of the whole stack to the first answered call", value: times.answered, must: 300, unit: "ms" },
    { number: "18", what: "engine, RSS idle", value: rss.engine, must: 100, unit: "MB" },
    { number: "–", what: "worker host, RSS idle", value: rss.host, must: 200, unit: "MB" },
    { number: "–", what: "start to /healthz green", value: times.healthy / 1_000, must: 3, unit: "s" },
  ]);
  process.stdout.write(
    `\ncommits per turn: ${digits(disk.commits, 1)}, ${digits(disk.bytes / 1_024)} KB of log; ${SESSIONS} sessions at once: ${digits(busy)} turns/s\n`,
  );
}

async function main(folder: string): Promise<void> {
  const { rounds, ms } = settings(5, 1_500);
  await using model = await start("model");
  const url = String(model.up["url"]);
  await using floor = await start("bare-turn", url, folder, String(ms));
  const { stack: started, boot: times } = await boot({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" });
  await using stack = started;
  const rss = { engine: rssMb(await stack.pid("engine")), host: rssMb(await stack.pid("host")) };
  const agent = new Agent(stack.iii);
  const run: Record<Variant, (ms: number) => Promise<Sample>> = {
    "bare SSE + 4 SQLite commits FULL": () => bareTurns(floor),
    "the stack, demo model": (length) => stackTurns(stack, agent, DEMO, length),
    "the stack, model over HTTP": (length) => stackTurns(stack, agent, HTTP, length),
  };
  head("Turn", `${rounds} rounds in turns, ${ms} ms per sample, one session per turn`);
  const settled = performance.now() + SETTLED_MS;
  do for (const name of VARIANTS) await run[name](ms);
  while (performance.now() < settled);
  const seen: Seen = { [VARIANTS[0]]: [], [VARIANTS[1]]: [], [VARIANTS[2]]: [] };
  await inTurns(rounds, VARIANTS, async (name) => void seen[name].push(await run[name](ms)));
  const busy = await inFlight(() => agent.turn(DEMO), SESSIONS, ms * 2);
  show(seen);
  judge(seen, { boot: times, rss, disk: await diskPerTurn(stack, agent), busy: busy.per_second });
}

const folder = mkdtempSync(join(tmpdir(), "iii-bench-"));
try {
  await main(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
