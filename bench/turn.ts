// A durable agent turn with one tool call through the whole stack of real processes, beside the same work done bare. Gates on nothing.
// node bench/turn.ts [--rounds 5] [--ms 1500]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "../harness/e2e/support/stack.ts";
import { Agent, type Model } from "./support/agent.ts";
import { type Boot, boot } from "./support/booted.ts";
import { inFlight, inTurns, settings } from "./support/load.ts";
import { rssMb, start } from "./support/processes.ts";
import { digits, goals, head, table } from "./support/report.ts";
import { best, mid, roleTurns, type Sample, stackTurns } from "./support/turns.ts";
import { walCommits } from "./support/wal.ts";

const SESSIONS = 32;
const COUNTED_TURNS = 3;
/** A stack that has just started asks more often who serves what; turns are timed after that. */
const SETTLED_MS = 12_000;

const DEMO: Model = { provider: "scripted", model: "demo", text: 'call bench::echo {"text":"hello"}' };
const HTTP: Model = { provider: "anthropic", model: "claude-sonnet-5-5", text: "call the echo" };

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

const VARIANTS = ["bare SSE + 4 SQLite commits FULL", "the stack, demo model", "the stack, model over HTTP"] as const;
type Variant = (typeof VARIANTS)[number];
type Seen = Record<Variant, Sample[]>;
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
  const { stack: started, boot: times } = await boot({ env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" } });
  await using stack = started;
  const rss = { engine: rssMb(await stack.pid("engine")), host: rssMb(await stack.pid("host")) };
  const agent = new Agent(stack.iii);
  const run: Record<Variant, (ms: number) => Promise<Sample>> = {
    "bare SSE + 4 SQLite commits FULL": () => roleTurns(floor),
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
