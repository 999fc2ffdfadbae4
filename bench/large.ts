// How a stack starts on a store of 2 GB, and what memory that takes. The store is made here, by the engine itself. Gates on nothing.
// node bench/large.ts [--mb 2048]
import { statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Stack } from "../harness/e2e/support/stack.ts";
import { Agent, type Model } from "./support/agent.ts";
import { boot, memoryOf } from "./support/booted.ts";
import { quiet } from "./support/load.ts";
import { digits, goals, head } from "./support/report.ts";

const MODEL: Model = { provider: "scripted", model: "demo", text: 'call bench::echo {"text":"hello"}' };
const STARTS = 3;
const LANES = 64;
/** Mostly short values, and long ones for most of the bytes, as transcripts with tool output have them. */
const SIZES = [1, 1, 2, 2, 4, 4, 8, 200].map((kb) => kb * 1_024);
const SCOPE = "bench_large";

const textOf = (n: number, size: number): string => `value ${n} `.repeat(Math.ceil(size / 8)).slice(0, size);

async function fill(stack: Stack, bytes: number): Promise<number> {
  let written = 0;
  let n = 0;
  const lane = async (): Promise<void> => {
    while (written < bytes) {
      n += 1;
      const size = SIZES[n % SIZES.length] ?? 1_024;
      written += size;
      await stack.trigger("state::set", { scope: SCOPE, key: `k${n}`, value: textOf(n, size) });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return n;
}

async function measured(mb: number): Promise<void> {
  const { stack: made } = await boot();
  await using stack = made;
  const rows = await fill(stack, mb * 1_048_576);
  await stack.stop();
  const size = statSync(join(stack.folder, "data/engine.db")).size / 1_048_576;
  head("Large", `${rows} values, a store of ${digits(size)} MB, ${STARTS} starts`);
  const starts: number[] = [];
  let rss = 0;
  let first = 0;
  for (let start = 0; start < STARTS; start += 1) {
    await quiet();
    const again = await boot({ folder: stack.folder });
    const running = again.stack; // ended with the first one, whose folder it runs on
    starts.push(again.boot.healthy / 1_000);
    const from = performance.now();
    await running.trigger("state::get", { scope: SCOPE, key: `k${Math.floor(rows / 2)}` });
    first = performance.now() - from;
    await new Agent(running.iii).turn(MODEL);
    rss = Math.max(rss, (await memoryOf(running)).rss);
    await running.stop();
  }
  goals([
    { number: "start", what: "start to green, best", value: Math.min(...starts), must: 1.5, unit: "s" },
    { number: "memory", what: "RSS of the whole stack after a turn, the most", value: rss, must: 300, unit: "MB" },
  ]);
  process.stdout.write(
    `\nall starts: ${starts.map((value) => digits(value, 2)).join(", ")} s; the first read of a value took ${digits(first, 1)} ms\n`,
  );
}

const { values } = parseArgs({ options: { mb: { type: "string", default: "2048" } } });
await measured(Number(values.mb));
process.exit(0);
