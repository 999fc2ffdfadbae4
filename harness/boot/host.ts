// The shared host process: loads bundled workers as the supervisor asks, each on a connection of its own. One that fails leaves the rest up.
// It is started before the bus is there, so that loading and the engine's own start go on at the same time.
import { flushCompileCache } from "node:module";
import { type BundledWorker, HostCommand, type HostReport } from "@iii/engine/supervisor";
import { connect, startWorker, systemClock, systemRandom, type WorkerDefinition } from "@iii/sdk";
import { createLogger, wsDialer } from "@iii/sdk/run";
import { type ProcessTelemetry, startTelemetry } from "@iii/sdk/trace";
import { REPO as ROOT } from "./bundled.ts";
import { startFault } from "./start-fault.ts";

interface Running {
  readonly stop: () => Promise<void>;
}

const log = createLogger({ name: "host" });
let telemetry: ProcessTelemetry | undefined;
const running = new Map<string, Running>();
/** One change of a worker at a time, in the order asked for. */
const turns = new Map<string, Promise<void>>();

function report(message: HostReport): void {
  if (process.connected) process.send?.(message);
}

function isWorker(value: unknown): value is WorkerDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "worker";
}

/** Loads what will be needed. What cannot be loaded is told when it is needed. */
function prepare(modules: readonly string[]): void {
  for (const module of modules) import(module).catch(() => undefined);
}

async function start(worker: BundledWorker): Promise<void> {
  const dialer = wsDialer(worker.url);
  telemetry ??= startTelemetry({ dialer });
  await stop(worker.name);
  const module = (await import(worker.module)) as { worker?: unknown };
  if (!isWorker(module.worker)) throw new Error(`${worker.module} does not export a worker`);
  const workerLog = log.child({ worker: worker.name });
  const iii = connect({ dialer, name: worker.name, log: workerLog, spans: telemetry.spans(worker.name) });
  try {
    const { config, root } = worker;
    const started = await startWorker(module.worker, { iii, config, root, clock: systemClock, random: systemRandom, log: workerLog });
    running.set(worker.name, started);
  } catch (error) {
    await iii.close({ drain_ms: 0 });
    throw error;
  }
}

async function stop(name: string): Promise<void> {
  const worker = running.get(name);
  running.delete(name);
  await worker?.stop();
}

function inTurn(name: string, work: () => Promise<HostReport>): void {
  const before = turns.get(name) ?? Promise.resolve();
  const done = before.then(work).catch((error: unknown): HostReport => ({ type: "failed", name, reason: startFault(error, ROOT) }));
  turns.set(name, done.then(report).then(afterwards));
}

const QUIET_MS = 1_000;
let quiet: NodeJS.Timeout | undefined;

/** What can wait until the start is over: keeping what was compiled, also for when this process is killed. */
function afterwards(): void {
  clearTimeout(quiet);
  quiet = setTimeout(flushCompileCache, QUIET_MS).unref();
}

function obey(value: unknown): void {
  const command = HostCommand.parse(value);
  if (command.type === "prepare") {
    prepare(command.modules);
    return;
  }
  if (command.type === "start") {
    const { worker } = command;
    inTurn(worker.name, async () => {
      await start(worker);
      return { type: "started", name: worker.name };
    });
    return;
  }
  const { name } = command;
  inTurn(name, async () => {
    await stop(name);
    return { type: "stopped", name };
  });
}

let ending = false;
function end(): void {
  if (ending) return;
  ending = true;
  Promise.all([...running.keys()].map(stop))
    .then(async () => telemetry?.stop())
    .then(
      () => process.exit(0),
      () => process.exit(1),
    );
}

process.on("message", obey);
process.on("SIGTERM", end);
process.on("SIGINT", end);
process.on("disconnect", end);
// Both end when the engine's process is gone, however it went.
process.stdin.on("close", end).resume();
