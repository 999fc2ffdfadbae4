// Runs what the plan names: one shared host process, own processes beside it; knows which workers are ready, and why one is not.
import { BusError, type Clock, type Logger } from "@iii/sdk";
import type { WorkerState, WorkerStatus } from "./contract.ts";
import { type Entry, newEntry, planFault, reasonFor } from "./entry.ts";
import { type Keeper, keepProcess } from "./keeper.ts";
import { HostReport, type Plan, type PlanSource, type ProcessSpec, type Spawner, type WorkerPlan } from "./port.ts";

const RETRY_MS = 500;
const RETRY_CAP_MS = 10_000;

/** A connection that has announced itself. */
export interface Announced {
  readonly id: string;
  readonly name: string | null;
  readonly pid: number | null;
}

export interface SupervisorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly spawner: Spawner;
  readonly source: PlanSource;
  /** The connections that have announced themselves now. */
  readonly announced: () => readonly Announced[];
  /** Every line that a child writes, with the name of its process. */
  readonly onLine?: (process: string, stream: "stdout" | "stderr", text: string) => void;
}

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #entries = new Map<string, Entry>();
  #host: Keeper | undefined;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
  }

  /** Starts the shared host, which is told what it will have to load. It starts no worker yet. */
  prepare(host: ProcessSpec, modules: readonly string[]): void {
    this.#host = this.#keepHost(host);
    this.#host.start();
    this.#host.send({ type: "prepare", modules: [...modules] });
  }

  /** Starts everything that the plan names. The plan has been checked before. */
  startAll(plan: Plan): void {
    for (const worker of plan.workers) this.#entries.set(worker.name, newEntry(worker));
    if (this.#host?.state === "running") this.#hostStarted();
    else {
      this.#host ??= this.#keepHost(plan.host);
      if (plan.workers.some((worker) => worker.bundled !== undefined)) this.#host.start();
    }
    for (const entry of this.#entries.values()) entry.keeper = this.#ownProcess(entry.plan);
    for (const entry of this.#entries.values()) entry.keeper?.start();
  }

  async stopAll(): Promise<void> {
    for (const entry of this.#entries.values()) {
      entry.wanted = false;
      entry.retry?.cancel();
    }
    const keepers = [this.#host, ...[...this.#entries.values()].map((entry) => entry.keeper)];
    await Promise.all(keepers.map((keeper) => keeper?.stop()));
  }

  get hostPid(): number | undefined {
    return this.#host?.pid;
  }

  list(): WorkerStatus[] {
    for (const entry of this.#entries.values()) if (this.#isAnnounced(entry)) this.#keeperOf(entry)?.proven();
    return [...this.#entries.values()].map((entry) => this.#status(entry));
  }

  async start(name: string): Promise<WorkerStatus> {
    const entry = await this.#reread(name);
    if (entry.wanted && this.#stateOf(entry) === "ready") return this.#status(entry);
    return this.#launch(entry);
  }

  async restart(name: string): Promise<WorkerStatus> {
    const fresh = await this.#deps.source.read();
    if (!fresh.ok) throw planFault(fresh.faults);
    if (this.#entries.has(name)) await this.#halt(this.#need(name));
    return this.#launch(await this.#reread(name));
  }

  async stop(name: string): Promise<WorkerStatus> {
    const entry = this.#need(name);
    await this.#halt(entry);
    return this.#status(entry);
  }

  /** @throws BusError `NOT_FOUND` when config.yaml names no such worker. */
  need(name: string): void {
    this.#need(name);
  }

  #need(name: string): Entry {
    const entry = this.#entries.get(name);
    if (entry !== undefined) return entry;
    throw new BusError("NOT_FOUND", `config.yaml names no worker '${name}'`, { details: { workers: [...this.#entries.keys()] } });
  }

  /** The entry as config.yaml has it now. A worker that runs keeps its old plan until it has been stopped. */
  async #reread(name: string): Promise<Entry> {
    const fresh = await this.#deps.source.read();
    if (!fresh.ok) throw planFault(fresh.faults);
    const plan = fresh.plan.workers.find((worker) => worker.name === name);
    if (plan === undefined) {
      const old = this.#entries.get(name);
      if (old !== undefined && !old.wanted) this.#entries.delete(name);
      throw new BusError("NOT_FOUND", `config.yaml names no enabled worker '${name}'`);
    }
    const old = this.#entries.get(name);
    if (old?.wanted === true) return old;
    const entry = newEntry(plan);
    entry.wanted = false;
    entry.stopping = old?.stopping;
    entry.keeper = this.#ownProcess(plan);
    this.#entries.set(name, entry);
    return entry;
  }

  #launch(entry: Entry): WorkerStatus {
    entry.wanted = true;
    entry.failures = 0;
    entry.reason = undefined;
    entry.said = undefined;
    this.#startsAnew(entry);
    entry.keeper?.start();
    if (entry.plan.bundled !== undefined) this.#startInHost(entry);
    return this.#status(entry);
  }

  /** From here on only what connects later counts as this worker. */
  #startsAnew(entry: Entry): void {
    if (entry.plan.source !== "external") entry.before = new Set(this.#deps.announced().map((one) => one.id));
  }

  async #halt(entry: Entry): Promise<void> {
    entry.wanted = false;
    entry.retry?.cancel();
    await entry.keeper?.stop();
    if (entry.plan.bundled === undefined || this.#host?.state !== "running") return;
    if (entry.stopping === undefined) {
      entry.stopping = Promise.withResolvers<void>();
      this.#host.send({ type: "stop", name: entry.plan.name });
    }
    await entry.stopping.promise;
  }

  #startInHost(entry: Entry): void {
    const { bundled } = entry.plan;
    if (bundled === undefined || this.#host === undefined) return;
    // A host that starts now is sent every wanted worker by `started`.
    if (this.#host.state === "running" && this.#host.pid !== undefined) this.#host.send({ type: "start", worker: bundled });
    else this.#host.start();
  }

  #keepHost(spec: ProcessSpec): Keeper {
    return this.#keep("host", spec, { policy: "on-failure", backoff_ms: 500 });
  }

  #ownProcess(plan: WorkerPlan): Keeper | undefined {
    return plan.process === undefined ? undefined : this.#keep(plan.name, plan.process, plan.restart);
  }

  #keep(name: string, spec: Plan["host"], restart: WorkerPlan["restart"]): Keeper {
    const { clock, spawner, log, onLine } = this.#deps;
    const isHost = spec.ipc;
    return keepProcess({
      spec,
      restart,
      clock,
      spawner,
      events: {
        started: () => {
          log.info({ process: name }, `${name}: process started`);
          const entry = this.#entries.get(name);
          if (isHost) this.#hostStarted();
          else if (entry !== undefined) this.#startsAnew(entry);
        },
        ended: (reason, { again, retry_ms }) => {
          const text = `${name}: process ${reason}${retry_ms === undefined ? "" : `; retry in ${retry_ms / 1_000} s`}`;
          if (reason !== "stopped") log[again ? "debug" : "warn"]({ process: name }, text);
          if (isHost) this.#hostEnded();
        },
        message: (value) => this.#report(value),
        line: (stream, text) => onLine?.(name, stream, text),
      },
    });
  }

  #hostStarted(): void {
    for (const entry of this.#entries.values()) {
      if (!entry.wanted || entry.plan.bundled === undefined) continue;
      this.#startsAnew(entry);
      this.#host?.send({ type: "start", worker: entry.plan.bundled });
    }
  }

  #hostEnded(): void {
    for (const entry of this.#entries.values()) {
      entry.retry?.cancel();
      entry.stopping?.resolve();
      entry.stopping = undefined;
    }
  }

  #report(value: unknown): void {
    const parsed = HostReport.safeParse(value);
    const entry = parsed.success ? this.#entries.get(parsed.data.name) : undefined;
    if (!parsed.success || entry === undefined) return;
    if (parsed.data.type === "stopped") {
      entry.stopping?.resolve();
      entry.stopping = undefined;
      return;
    }
    if (parsed.data.type === "started") {
      entry.failures = 0;
      entry.reason = undefined;
      entry.said = undefined;
      return;
    }
    this.#failedInHost(entry, parsed.data.reason);
  }

  #failedInHost(entry: Entry, reason: string): void {
    entry.reason = reason;
    entry.failures += 1;
    const delay = Math.min(RETRY_CAP_MS, RETRY_MS * 2 ** (entry.failures - 1));
    const text = `${entry.plan.name} cannot start: ${reason}; retry in ${delay / 1_000} s`;
    this.#deps.log[entry.said === reason ? "debug" : "error"]({ worker: entry.plan.name }, text);
    entry.said = reason;
    entry.retry = this.#deps.clock.setTimer(() => {
      if (entry.wanted) this.#startInHost(entry);
    }, delay);
  }

  #keeperOf(entry: Entry): Keeper | undefined {
    return entry.plan.bundled === undefined ? entry.keeper : this.#host;
  }

  #isAnnounced(entry: Entry): boolean {
    const pid = entry.keeper?.pid;
    const isIts = (one: Announced) => one.name === entry.plan.name || (pid !== undefined && one.pid === pid);
    return this.#deps.announced().some((one) => isIts(one) && !entry.before.has(one.id));
  }

  #stateOf(entry: Entry): WorkerState {
    if (!entry.wanted) return "stopped";
    const keeper = this.#keeperOf(entry);
    const running = entry.plan.source === "external" || keeper?.state === "running";
    if (running && this.#isAnnounced(entry)) return "ready";
    if (entry.plan.source === "external") return "waiting";
    if (keeper?.state === "crash_loop") return "crash_loop";
    return running && entry.reason === undefined && keeper?.reason === undefined ? "starting" : "failed";
  }

  #status(entry: Entry): WorkerStatus {
    const keeper = this.#keeperOf(entry);
    const state = this.#stateOf(entry);
    return {
      name: entry.plan.name,
      source: entry.plan.source,
      state,
      pid: keeper?.pid ?? null,
      restarts: keeper?.restarts ?? 0,
      reason: reasonFor(state, entry.reason ?? keeper?.reason, entry.plan.source),
      stderr: state === "failed" || state === "crash_loop" ? [...(keeper?.stderr ?? [])] : [],
    };
  }
}
