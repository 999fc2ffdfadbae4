// What one costs where there are many: slow models, parked turns, long sessions, long results, five thousand workers. Gates on nothing.
// node bench/crowd.ts [--slow 2000] [--parked 10000] [--workers 5000] [--messages 8000]
import { parseArgs } from "node:util";
import type { Stack } from "../harness/e2e/support/stack.ts";
import { until } from "../harness/e2e/support/stack.ts";
import { Agent, type Model } from "./support/agent.ts";
import { boot, cpuOf, memoryOf, writtenBytes } from "./support/booted.ts";
import { inFlight, latencies, median, quantile } from "./support/load.ts";
import { start } from "./support/processes.ts";
import { digits, type Goal, goals, head } from "./support/report.ts";

const { values } = parseArgs({
  options: {
    slow: { type: "string", default: "2000" },
    parked: { type: "string", default: "10000" },
    workers: { type: "string", default: "5000" },
    messages: { type: "string", default: "8000" },
  },
});
const [SLOW, PARKED, WORKERS, MESSAGES] = [values.slow, values.parked, values.workers, values.messages].map(Number) as [
  number,
  number,
  number,
  number,
];
const IDLE_MS = 20_000;
const SAMPLES = 50;
const say = (text: string): Model => ({ provider: "scripted", model: "demo", text });
const QUICK = say('call bench::echo {"text":"hello"}');
const ASKED = say('call bench::asked {"text":"hello"}');

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

async function rig(): Promise<{ stack: Stack; agent: Agent }> {
  const { stack } = await boot();
  const agent = new Agent(stack.iii);
  for (let n = 0; n < 100; n += 1) await agent.turn(QUICK);
  return { stack, agent };
}

/** Starts a turn in a session of its own and does not wait for it. */
async function begin(stack: Stack, session_id: string, { provider, model, text }: Model): Promise<void> {
  const messages = [{ role: "user", content: [{ type: "text", text }], timestamp: Date.now() }];
  await stack.trigger("harness::trigger", { session_id, payload: { provider, model, messages } });
}

/** Starts `count` turns, 32 at a time. */
async function beginAll(stack: Stack, name: string, count: number, model: Model): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) await begin(stack, `${name}-${n}`, model);
  };
  await Promise.all(Array.from({ length: 32 }, lane));
}

async function besideSlow(): Promise<Goal[]> {
  const { stack, agent } = await rig();
  await using _ended = stack;
  const alone = await latencies(() => agent.turn(QUICK), 2_000);
  await beginAll(stack, "slow", SLOW, say("slow 600000 one two three four"));
  await pause(3_000);
  const beside = await latencies(() => agent.turn(QUICK), 2_000);
  return [
    { number: "crowd", what: `a quick turn beside ${SLOW} slow models, p50 to alone`, value: median(beside) / median(alone), must: 3 },
  ];
}

/** Decides a parked call and waits for the end of its turn; µs. */
async function wake(stack: Stack, session_id: string): Promise<number> {
  const [row] = await stack.trigger<{ function_call_id: string; args_sha256: string }[]>("approval::list_pending", { session_id });
  if (row === undefined) throw new Error(`nothing is parked in ${session_id}`);
  const { function_call_id, args_sha256 } = row;
  const from = performance.now();
  await stack.trigger("approval::resolve", { session_id, function_call_id, args_sha256, decision: "allow" });
  for (;;) {
    const { state } = await stack.trigger<{ state: string }>("turn::get_state", { session_id });
    if (state === "stopped") return (performance.now() - from) * 1_000;
    if (state === "failed") throw new Error(`the turn of ${session_id} failed`);
  }
}

const isParked = (stack: Stack, session_id: string) => async () =>
  (await stack.trigger<{ state: string }>("turn::get_state", { session_id })).state === "function_awaiting_approval" || undefined;

async function parkedTurns(): Promise<Goal[]> {
  const { stack } = await rig();
  await using _ended = stack;
  const alone: number[] = [];
  for (let n = 0; n < SAMPLES; n += 1) {
    await begin(stack, `lone-${n}`, ASKED);
    await until("one parked turn", isParked(stack, `lone-${n}`));
    alone.push(await wake(stack, `lone-${n}`));
  }
  await beginAll(stack, "parked", PARKED, ASKED);
  for (let n = 0; n < PARKED; n += 97) await until(`parked-${n}`, isParked(stack, `parked-${n}`), 300_000);
  await pause(5_000);
  const before = cpuOf(stack);
  await pause(IDLE_MS);
  const idle = ((cpuOf(stack) - before) / IDLE_MS) * 100;
  const among: number[] = [];
  const woken = Math.min(SAMPLES, PARKED);
  for (let n = 0; n < woken; n += 1) among.push(await wake(stack, `parked-${Math.floor((n * PARKED) / woken)}`));
  return [
    { number: "crowd", what: `idle CPU with ${PARKED} parked turns, of one core`, value: idle, must: 1, unit: "%" },
    { number: "crowd", what: "wake-up p99 to that of one parked turn", value: quantile(among, 0.99) / quantile(alone, 0.99), must: 3 },
    { number: "crowd", what: "RSS of the whole stack with them", value: (await memoryOf(stack)).rss, must: 400, unit: "MB" },
  ];
}

async function longSession(): Promise<Goal[]> {
  const { stack, agent } = await rig();
  await using _ended = stack;
  const engine = await stack.pid("engine");
  const batch = JSON.stringify(Array.from({ length: 24 }, () => ({ function: "bench::long", payload: { size: 125_000 } })));
  const before = writtenBytes(engine);
  await agent.turn(say(`calls ${batch}`));
  await pause(1_000);
  const written = (writtenBytes(engine) - before) / 1_048_576;
  const session_id = "long";
  for (let n = 0; n < MESSAGES; n += 500) {
    const messages = Array.from({ length: Math.min(500, MESSAGES - n) }, (_, i) => ({
      role: i % 2 === 0 ? "user" : "assistant",
      content: [{ type: "text", text: `message ${n + i} ${"of some length ".repeat(8)}` }],
      timestamp: Date.now(),
      ...(i % 2 === 0 ? {} : { provider: "scripted", model: "demo", stop_reason: "end" }),
    }));
    await stack.trigger("session-tree::append_batch", { session_id, messages, create: true });
  }
  const opened: number[] = [];
  for (let n = 0; n < 10; n += 1) {
    const from = performance.now();
    await stack.trigger("session-tree::messages", { session_id, limit: 100 });
    opened.push(performance.now() - from);
  }
  return [
    { number: "crowd", what: "a batch of 24 results of 125 KB: written to disk", value: written, must: 10, unit: "MB" },
    { number: "crowd", what: `the newest 100 of ${MESSAGES} messages, p50`, value: median(opened), must: 150, unit: "ms" },
  ];
}

async function manyWorkers(): Promise<Goal[]> {
  const { stack } = await rig();
  await using _ended = stack;
  const info = async (n: number): Promise<void> => {
    await stack.trigger("engine::functions::info", { function_id: `crowd::${n % 10}::f0` });
    await stack.trigger(`crowd::${n % 10}::f0`, {});
  };
  await using _few = await start("crowd", stack.url, "10", "1");
  await inFlight(info, 8, 1_000);
  const few = median(await latencies(info, 2_000));
  await using _many = await start("crowd", stack.url, String(WORKERS), "1");
  const many = median(await latencies(info, 2_000));
  await using routes = await start("crowd", stack.url, "1", "1000");
  const beside: number[] = [];
  let left = false;
  const watch = (async () => {
    while (!left) beside.push(...(await latencies(() => stack.trigger("engine::functions::info", { function_id: "state::get" }), 0, 1)));
  })();
  await pause(500);
  const usual = quantile(beside.splice(0), 0.99);
  await routes.ask("leave");
  await pause(200);
  left = true;
  await watch;
  return [
    { number: "crowd", what: `functions::info and one call at ${WORKERS} workers, to 10`, value: many / few, must: 1.1 },
    {
      number: "crowd",
      what: "a worker with 1,000 functions leaves: the longest wait beside it, less the usual p99",
      value: (Math.max(...beside) - usual) / 1_000,
      must: 5,
      unit: "ms",
    },
  ];
}

head("Crowd", "what one costs where there are many");
for (const part of [besideSlow, parkedTurns, longSession, manyWorkers]) {
  try {
    goals(await part());
  } catch (error) {
    process.stdout.write(`\n${part.name} FAILED: ${error instanceof Error ? error.message : String(error)}\n`);
  }
}
process.stdout.write(`\n${digits(performance.now() / 1_000)} s\n`);
process.exit(0);
