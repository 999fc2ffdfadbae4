// The supervisor as a built-in: worker::*, and the health of everything that config.yaml names.

import type { Builtin, BuiltinCall, EngineHost } from "../../ports/host.ts";
import type { HealthReport } from "../http/contract.ts";
import { operatorAdd, workerList, workerRestart, workerStart, workerStop, workerToken } from "./contract.ts";
import type { Plan, PlanSource, ProcessSpec, Spawner } from "./port.ts";
import { type Announced, Supervisor } from "./supervisor.ts";

const OWNER = "iii-supervisor";

export interface SupervisorOptions {
  /** Names that health waits for until the plan has been launched. */
  readonly expected: readonly string[];
  readonly source: PlanSource;
  readonly spawner: Spawner;
  readonly onLine?: (process: string, stream: "stdout" | "stderr", text: string) => void;
}

export interface SupervisorBuiltin extends Builtin {
  /** Starts the shared host ahead of the bus, so that it loads meanwhile. The plan that is launched later must name the same host. */
  prepare(host: ProcessSpec, modules: readonly string[]): void;
  /** Starts the planned processes; call it when the engine can be reached. */
  launch(plan: Plan): void;
  /** Drains and ends every process. */
  halt(): Promise<void>;
  health(): HealthReport;
  readonly hostPid: number | undefined;
}

function readAnnounced(host: EngineHost): readonly Announced[] {
  return host.registry
    .workers()
    .flatMap(({ id, announced }) => (announced === undefined ? [] : [{ id, name: announced.name ?? null, pid: announced.pid ?? null }]));
}

function healthOf(host: EngineHost, supervisor: Supervisor): HealthReport {
  const wanted = supervisor.list().filter((worker) => worker.state !== "stopped");
  const isDown = (state: string) => state === "failed" || state === "crash_loop";
  const failed = wanted.filter((worker) => isDown(worker.state)).map(({ name, reason }) => ({ name, reason: reason ?? "unknown" }));
  const waiting = wanted.filter((worker) => worker.state !== "ready").map((worker) => worker.name);
  const workers = wanted.filter((worker) => worker.state === "ready").map((worker) => worker.name);
  const status = waiting.length === 0 ? "ready" : failed.length > 0 ? "degraded" : "starting";
  return { status, workers, waiting, failed, durability: host.store.durability };
}

/** Both say in the log who asked: a token is a right that somebody takes along. */
function serveTokens(engine: EngineHost, supervisor: Supervisor): void {
  const audit = (what: string, name: string, call: BuiltinCall): void =>
    engine.log.warn({ name, by: call.context.principal }, `${what} '${name}' was issued to ${call.context.principal?.name ?? "nobody"}`);
  engine.handle(OWNER, workerToken, async ({ name, keep }, call) => {
    supervisor.need(name);
    const token = await engine.tokens.issue({ kind: "entry", name }, keep);
    audit("a token of entry", name, call);
    return { token };
  });
  engine.handle(OWNER, operatorAdd, async ({ name }, call) => {
    const key = await engine.tokens.issue({ kind: "operator", name }, true);
    audit("a key of operator", name, call);
    return { key };
  });
}

export function supervisorBuiltin(options: SupervisorOptions): SupervisorBuiltin {
  let supervisor: Supervisor | undefined;
  let host: EngineHost | undefined;
  let launched = false;

  return {
    name: "supervisor",
    install(engine) {
      host = engine;
      const own = new Supervisor({ ...options, announced: () => readAnnounced(engine), clock: engine.clock, log: engine.log });
      supervisor = own;
      engine.handle(OWNER, workerList, () => ({ workers: own.list() }));
      engine.handle(OWNER, workerStart, async ({ name }) => ({ worker: await own.start(name) }));
      engine.handle(OWNER, workerStop, async ({ name }) => ({ worker: await own.stop(name) }));
      engine.handle(OWNER, workerRestart, async ({ name }) => ({ worker: await own.restart(name) }));
      serveTokens(engine, own);
      return { stop: () => own.stopAll() };
    },
    prepare: (spec, modules) => supervisor?.prepare(spec, modules),
    halt: async () => supervisor?.stopAll(),
    launch: (plan) => {
      launched = true;
      supervisor?.startAll(plan);
    },
    health: () => {
      if (host === undefined || supervisor === undefined) throw new Error("the supervisor is not installed");
      if (launched) return healthOf(host, supervisor);
      return { status: "starting", workers: [], waiting: [...options.expected], failed: [], durability: host.store.durability };
    },
    get hostPid() {
      return supervisor?.hostPid;
    },
  };
}
