// Loads bundled workers as the supervisor asks, each on a connection of its own. One that fails leaves the rest up.
// The same in the engine's process and in a host process beside it; only where the bus is and where spans go differs.
import { flushCompileCache } from "node:module";
import type { BundledWorker, HostCommand, HostReport } from "@iii/engine/supervisor";
import { connect, type Dialer, type Logger, type SpanSink, startWorker, systemClock, systemRandom, type WorkerDefinition } from "@iii/sdk";
import { REPO as ROOT } from "./bundled.ts";
import { startFault } from "./start-fault.ts";

/** How a worker reaches the bus, and where what it observes goes. */
export interface Surroundings {
  readonly dialer: Dialer;
  readonly log: Logger;
  readonly spans: SpanSink | undefined;
}

export interface HostingOptions {
  around(worker: BundledWorker): Surroundings;
  report(message: HostReport): void;
}

const QUIET_MS = 1_000;

function isWorker(value: unknown): value is WorkerDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "worker";
}

export class Hosting {
  readonly #options: HostingOptions;
  readonly #running = new Map<string, { stop(): Promise<void> }>();
  /** One change of a worker at a time, in the order asked for. */
  readonly #turns = new Map<string, Promise<void>>();
  #quiet: NodeJS.Timeout | undefined;

  constructor(options: HostingOptions) {
    this.#options = options;
  }

  obey(command: HostCommand): void {
    if (command.type === "prepare") {
      // What cannot be loaded is told when it is needed.
      for (const module of command.modules) import(module).catch(() => undefined);
      return;
    }
    if (command.type === "start") {
      const { worker } = command;
      this.#inTurn(worker.name, async () => {
        await this.#start(worker);
        return { type: "started", name: worker.name };
      });
      return;
    }
    const { name } = command;
    this.#inTurn(name, async () => {
      await this.#stop(name);
      return { type: "stopped", name };
    });
  }

  /** Stops every worker. */
  async end(): Promise<void> {
    clearTimeout(this.#quiet);
    await Promise.all([...this.#running.keys()].map((name) => this.#stop(name)));
  }

  async #start(worker: BundledWorker): Promise<void> {
    await this.#stop(worker.name);
    const module = (await import(worker.module)) as { worker?: unknown };
    if (!isWorker(module.worker)) throw new Error(`${worker.module} does not export a worker`);
    const { dialer, log, spans } = this.#options.around(worker);
    const iii = connect({ dialer, name: worker.name, log, spans });
    try {
      const { config, root } = worker;
      const started = await startWorker(module.worker, { iii, config, root, clock: systemClock, random: systemRandom, log });
      this.#running.set(worker.name, started);
    } catch (error) {
      await iii.close({ drain_ms: 0 });
      throw error;
    }
  }

  async #stop(name: string): Promise<void> {
    const worker = this.#running.get(name);
    this.#running.delete(name);
    await worker?.stop();
  }

  #inTurn(name: string, work: () => Promise<HostReport>): void {
    const before = this.#turns.get(name) ?? Promise.resolve();
    const done = before.then(work).catch((error: unknown): HostReport => ({ type: "failed", name, reason: startFault(error, ROOT) }));
    const told = done.then((message) => {
      this.#options.report(message);
      this.#afterwards();
    });
    this.#turns.set(name, told);
  }

  /** What can wait until the start is over: keeping what was compiled, also for when this process is killed. */
  #afterwards(): void {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(flushCompileCache, QUIET_MS).unref();
  }
}
