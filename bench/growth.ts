// What ten thousand turns leave in memory and on disk, and how a stack starts on it. Gates on nothing.
// node bench/growth.ts [--turns 10000]
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Stack } from "../harness/e2e/support/stack.ts";
import { Agent, type Model } from "./support/agent.ts";
import { boot, memoryOf } from "./support/booted.ts";
import { digits, goals, head, table } from "./support/report.ts";

const MODEL: Model = { provider: "scripted", model: "demo", text: 'call bench::echo {"text":"hello"}' };
const LANES = 8;
const SAMPLED_SESSIONS = 20;

interface Point {
  readonly turns: number;
  readonly rss: number;
  readonly disk: number;
}

const diskMb = (folder: string): number =>
  readdirSync(folder)
    .filter((name) => /\.db(?:-wal)?$/.test(name))
    .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0) / 1_048_576;

/** KB per turn: the slope of the straight line that fits best. */
function slope(points: readonly Point[]): number {
  const mean = (key: keyof Point): number => points.reduce((sum, point) => sum + point[key], 0) / points.length;
  const [turns, rss] = [mean("turns"), mean("rss")];
  const above = points.reduce((sum, point) => sum + (point.turns - turns) * (point.rss - rss), 0);
  return (above / points.reduce((sum, point) => sum + (point.turns - turns) ** 2, 0)) * 1_024;
}

/** Runs `count` turns, `LANES` at a time. */
async function run(agent: Agent, count: number): Promise<void> {
  let left = count;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await agent.turn(MODEL);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** Characters of the transcript of one turn's session, as JSON. */
async function transcriptSize(stack: Stack): Promise<number> {
  let size = 0;
  for (let n = 1; n <= SAMPLED_SESSIONS; n += 1) {
    const { messages } = await stack.trigger<{ messages: unknown[] }>("session-tree::messages", { session_id: `bench-${n}` });
    size += JSON.stringify(messages).length;
  }
  return size / SAMPLED_SESSIONS;
}

async function measured(turns: number): Promise<void> {
  const { stack: started } = await boot();
  await using stack = started;
  const data = join(stack.folder, "data");
  const agent = new Agent(stack.iii);
  head("Growth", `${turns} turns with one call each, ${LANES} at a time, a session of its own for each`);
  const points: Point[] = [];
  const step = Math.max(1, Math.floor(turns / 10));
  for (let done = 0; done < turns; ) {
    await run(agent, step);
    done += step;
    points.push({ turns: done, rss: (await memoryOf(stack)).rss, disk: diskMb(data) });
  }
  const kept = await transcriptSize(stack);
  await stack.stop();
  const disk = statSync(join(data, "engine.db")).size / turns;
  const all = (diskMb(data) * 1_048_576) / turns;
  const again = await boot({ folder: stack.folder });
  const restarted = again.stack; // ended with the first one, whose folder it runs on
  await restarted.trigger("session-tree::messages", { session_id: "bench-1" });
  table(
    ["turns", "RSS MB", "files MB"],
    points.map((point) => [String(point.turns), digits(point.rss), digits(point.disk)]),
  );
  goals([
    {
      number: "growth",
      what: "RSS slope, without the first third",
      value: slope(points.slice(Math.ceil(points.length / 3))),
      must: 2,
      unit: "KB/turn",
    },
    { number: "growth", what: "bytes of engine.db per byte of transcript", value: disk / kept, must: 2.5 },
    { number: "start", what: "start to green after it", value: again.boot.healthy / 1_000, must: 1.5, unit: "s" },
    { number: "memory", what: "RSS of the whole stack after that start", value: (await memoryOf(restarted)).rss, must: 300, unit: "MB" },
  ]);
  process.stdout.write(`\na transcript has ${digits(kept)} characters; with traces ${digits(all / kept, 1)} bytes are kept for each\n`);
}

const { values } = parseArgs({ options: { turns: { type: "string", default: "10000" } } });
await measured(Number(values.turns));
process.exit(0);
