// A durable turn beside other people's, in the same rounds. `npx -y pnpm bench:peers` installs them first, outside the workspace. Gates on nothing.
// node bench/peers.ts [--rounds 5] [--ms 1500]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, type Model } from "./support/agent.ts";
import { boot } from "./support/booted.ts";
import { inTurns, settings } from "./support/load.ts";
import { start } from "./support/processes.ts";
import { digits, goals, head, table } from "./support/report.ts";
import { best, mid, roleTurns, type Sample, stackTurns } from "./support/turns.ts";

const DEMO: Model = { provider: "scripted", model: "demo", text: 'call bench::echo {"text":"hello"}' };
const HTTP: Model = { provider: "anthropic", model: "claude-sonnet-5-5", text: "call the echo" };
const BARE = "bare SSE + 4 SQLite commits FULL";
const GRAPH = "LangGraph JS + SQLite saver, NORMAL";
const OWN = "the stack, FULL, demo model";
const OWN_HTTP = "the stack, FULL, model over HTTP";

async function main(folder: string): Promise<void> {
  const { rounds, ms } = settings(5, 1_500);
  await using model = await start("model");
  const url = String(model.up["url"]);
  await using bare = await start("bare-turn", url, folder, String(ms));
  await using graph = await start("langgraph", url, folder, String(ms));
  const { stack: started } = await boot({ env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" } });
  await using stack = started;
  const agent = new Agent(stack.iii);
  const run: Record<string, () => Promise<Sample>> = {
    [BARE]: () => roleTurns(bare),
    [GRAPH]: () => roleTurns(graph),
    [OWN]: () => stackTurns(stack, agent, DEMO, ms),
    [OWN_HTTP]: () => stackTurns(stack, agent, HTTP, ms),
  };
  head("Peers", `${rounds} rounds in turns, ${ms} ms per sample; every turn has two model calls and one tool call`);
  for (let warm = 0; warm < 3; warm += 1) for (const sample of Object.values(run)) await sample();
  const seen: Record<string, Sample[]> = {};
  await inTurns(rounds, Object.keys(run), async (name) => {
    const sample = await run[name]?.();
    if (sample !== undefined) seen[name] = [...(seen[name] ?? []), sample];
  });
  const of = (name: string): Sample[] => seen[name] ?? [];
  const ratio = (name: string, to: string, key: keyof Sample): string =>
    `${digits(mid(of(name), key) / mid(of(to), key), 2)} / ${digits(best(of(name), key) / best(of(to), key), 2)}`;
  table(
    ["a turn with one call", "ms p50", "× LangGraph (median / best)", "CPU ms", "× LangGraph (median / best)"],
    Object.keys(run).map((name) => [
      name,
      digits(mid(of(name), "p50"), 2),
      ratio(name, GRAPH, "p50"),
      digits(mid(of(name), "cpu"), 2),
      ratio(name, GRAPH, "cpu"),
    ]),
  );
  const wall = (name: string): number =>
    Math.min(mid(of(name), "p50") / mid(of(GRAPH), "p50"), best(of(name), "p50") / best(of(GRAPH), "p50"));
  goals([
    { number: "15", what: "turn to LangGraph's, demo model", value: wall(OWN), must: 1.1 },
    { number: "15", what: "turn to LangGraph's, model over HTTP", value: wall(OWN_HTTP), must: 1.1 },
  ]);
}

const folder = mkdtempSync(join(tmpdir(), "iii-bench-"));
try {
  await main(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
