// The shell of a worker process: environment and flags in, connection, signals, drain, exit code. Nothing else may end the process.
import { parseArgs } from "node:util";
import { z } from "zod";
import { connect } from "./client/connect.ts";
import { wsDialer } from "./client/ws.ts";
import { BusError, toBusError } from "./errors.ts";
import { createLogger } from "./log.ts";
import type { Logger } from "./log-port.ts";
import { systemClock, systemRandom } from "./system.ts";
import { type StartedWorker, startWorker, type WorkerDefinition } from "./worker.ts";

export { type WsDialerOptions, wsDialer } from "./client/ws.ts";
export { createLogger, type LoggerOptions } from "./log.ts";

const HELP = `Options:
  --url <ws://…>    engine address (default: III_URL, else ws://127.0.0.1:49134)
  --config <json>   the worker's config block (default: III_WORKER_CONFIG, else {})
  --manifest        print the worker's name and the schema of its config, and exit
  --help            print this, and exit
`;

interface Settings {
  readonly url: string;
  readonly config: unknown;
  readonly mode: "run" | "manifest" | "help";
}

/** @throws BusError `config_invalid` for an unknown flag or a config that is not JSON. */
function readSettings(argv: readonly string[], env: NodeJS.ProcessEnv): Settings {
  const options = {
    url: { type: "string" },
    config: { type: "string" },
    manifest: { type: "boolean" },
    help: { type: "boolean" },
  } as const;
  try {
    const { values } = parseArgs({ args: [...argv], options, strict: true });
    const mode = values.help === true ? "help" : values.manifest === true ? "manifest" : "run";
    const config: unknown = JSON.parse(values.config ?? env["III_WORKER_CONFIG"] ?? "{}");
    return { url: values.url ?? env["III_URL"] ?? "ws://127.0.0.1:49134", config, mode };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BusError("config_invalid", reason, { cause });
  }
}

/** Runs a worker until it is told to stop. Never returns normally: the process ends with 0 after a clean stop, 1 if it could not start. */
export async function run<C extends z.ZodType>(worker: WorkerDefinition<C>): Promise<void> {
  const log = createLogger({ name: worker.name });
  try {
    const settings = readSettings(process.argv.slice(2), process.env);
    if (settings.mode === "help") process.stdout.write(`${worker.name}: a worker of the bus.\n\n${HELP}`);
    else if (settings.mode === "manifest") process.stdout.write(`${JSON.stringify(manifest(worker), null, 2)}\n`);
    else await serve(worker, settings, log);
  } catch (thrown) {
    const error = toBusError(thrown);
    process.stderr.write(`worker '${worker.name}' cannot start: ${error.code}: ${error.message}\n`);
    process.exit(1);
  }
}

function manifest<C extends z.ZodType>(worker: WorkerDefinition<C>): object {
  return {
    name: worker.name,
    runtime: "node",
    config: z.toJSONSchema(worker.config, { io: "input", target: "draft-7", unrepresentable: "any" }),
  };
}

async function serve<C extends z.ZodType>(worker: WorkerDefinition<C>, settings: Settings, local: Logger): Promise<void> {
  const { startTelemetry } = await import("./trace.ts");
  const dialer = wsDialer(settings.url);
  const telemetry = startTelemetry({ dialer });
  await telemetry.serveApi();
  const log = telemetry.logger(local, worker.name);
  const iii = connect({ dialer, log, name: worker.name, spans: telemetry.spans(worker.name) });
  const started = startWorker(worker, {
    iii,
    config: settings.config,
    clock: systemClock,
    random: systemRandom,
    log,
    root: process.env["III_ROOT"] ?? process.cwd(),
  });
  endOnSignals(started, () => telemetry.stop(), log);
  await started;
  log.info({ url: dialer.address }, "ready");
}

/** The first signal drains; the second ends the process at once. A supervised worker also ends when its engine is gone. */
function endOnSignals(started: Promise<StartedWorker>, flush: () => Promise<void>, log: Logger): void {
  let stopping = false;
  const stop = (why: string): void => {
    if (stopping) process.exit(130);
    stopping = true;
    log.info({ why }, "stopping");
    void shutDown(started, flush, log);
  };
  process.on("SIGINT", () => stop("SIGINT"));
  process.on("SIGTERM", () => stop("SIGTERM"));
  if (process.env["III_SUPERVISED"] !== "1") return;
  process.stdin.resume();
  process.stdin.on("error", () => stop("stdin failed"));
  process.stdin.on("close", () => stop("the supervisor is gone"));
}

const SHUT_DOWN_MS = 12_000;

async function shutDown(started: Promise<StartedWorker>, flush: () => Promise<void>, log: Logger): Promise<void> {
  const late = setTimeout(() => process.exit(1), SHUT_DOWN_MS);
  try {
    // A worker that is still starting has nothing to drain.
    const running = await Promise.race([started, new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 100))]);
    await running?.stop();
    await flush();
  } catch (thrown) {
    log.error({ err: thrown }, "the worker did not stop cleanly");
    process.exit(1);
  }
  clearTimeout(late);
  process.exit(0);
}
