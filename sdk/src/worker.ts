// Values that describe workers, and the start of one worker on one connection: config, registrations, `ready`, and only then
// the announcement. Owns no process.
import { z } from "zod";
import type { Iii } from "./client/iii.ts";
import type { Client } from "./client/options.ts";
import type { Call, FunctionDefinition, Handler, TriggerSpec } from "./definition.ts";
import { BusError } from "./errors.ts";
import type { Logger } from "./log-port.ts";
import type { Clock, Random } from "./ports.ts";
import { checkConfig } from "./worker-config.ts";

/** How a worker names what it serves, inside `register`. */
export interface On {
  /** Serves a defined function: input is parsed (a bad one answers `invalid_payload` with the field), output is checked. */
  <I extends z.ZodType, O extends z.ZodType>(
    definition: FunctionDefinition<I, O>,
    handler: (input: z.output<I>, call: Call) => z.input<O> | Promise<z.input<O>>,
  ): void;
  /** The same with the input as it came, for functions that answer bad input with a union instead of an error. */
  <I extends z.ZodType, O extends z.ZodType>(
    definition: FunctionDefinition<I, O>,
    handler: (input: unknown, call: Call) => z.input<O> | Promise<z.input<O>>,
    options: { raw: true },
  ): void;
  /** Binds a trigger to a function. */
  trigger(spec: TriggerSpec): void;
}

export interface WorkerContext<C = unknown> {
  readonly config: C;
  readonly iii: Iii;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Folder that relative paths in the worker's config start from: the one that holds `config.yaml`. */
  readonly root: string;
}

/** What `register` may return: called once at shutdown, after new calls have stopped. */
export interface WorkerHooks {
  /** Runs once after every registration is on the wire, before the worker announces itself ready. */
  ready?(): void | Promise<void>;
  /** Runs at the start of a shutdown, when no new calls come and running ones are still served: for ending what would not end in time. */
  stopping?(): void | Promise<void>;
  stop?(): void | Promise<void>;
}

export interface WorkerDefinition<C extends z.ZodType = z.ZodType> {
  readonly kind: "worker";
  readonly name: string;
  readonly config: C;
  register(on: On, context: WorkerContext<z.output<C>>): WorkerHooks | undefined | Promise<WorkerHooks | undefined> | void | Promise<void>;
}

const NO_CONFIG = z.strictObject({});

/** Describes a worker: its name, the schema of its `config` block (default: no keys), and what it serves. Has no effect by itself. */
export function defineWorker<C extends z.ZodType = typeof NO_CONFIG>(
  spec: Omit<WorkerDefinition<C>, "kind" | "config"> & { readonly config?: C },
): WorkerDefinition<C> {
  // Without a schema C is the default one, which the compiler cannot conclude from an absent key.
  return { kind: "worker", ...spec, config: spec.config ?? (NO_CONFIG as z.ZodType as C) };
}

export interface StartWorkerOptions {
  readonly iii: Client;
  /** The worker's block of the configuration, as it was read. */
  readonly config: unknown;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly root: string;
  readonly version?: string;
  readonly pid?: number;
}

export interface StartedWorker {
  /** Stops taking calls, lets running handlers finish, runs the worker's `stop`, closes the connection. */
  stop(): Promise<void>;
}

/** Well below the time after which a supervisor kills the process, so that `stop` still runs. */
const DRAIN_MS = 5_000;

/** @throws BusError `config_invalid` naming the field and what it should be. */
function parseConfig<C extends z.ZodType>(worker: WorkerDefinition<C>, config: unknown): z.output<C> {
  const checked = checkConfig(worker.config, config);
  if (checked.ok) return checked.data;
  const faults = checked.lines;
  throw new BusError("config_invalid", `worker '${worker.name}': ${faults.join("; ")}`, { details: { worker: worker.name, faults } });
}

/** Resolves when the engine has this worker's registrations and its announcement: from then on it is ready. */
export async function startWorker<C extends z.ZodType>(worker: WorkerDefinition<C>, options: StartWorkerOptions): Promise<StartedWorker> {
  const { iii, clock, random, log, root } = options;
  const context: WorkerContext<z.output<C>> = { config: parseConfig(worker, options.config), iii, clock, random, log, root };
  const hooks: WorkerHooks = (await worker.register(makeOn(iii), context)) ?? {};
  await hooks.ready?.();
  const pid = options.pid ?? (globalThis as { process?: { pid?: number } }).process?.pid;
  await iii.announce({
    name: worker.name,
    runtime: "node",
    ...(pid === undefined ? {} : { pid }),
    ...(options.version === undefined ? {} : { version: options.version }),
  });
  return {
    async stop() {
      const drained = iii.drain(DRAIN_MS);
      await hooks.stopping?.();
      await drained;
      await hooks.stop?.();
      await iii.close({ drain_ms: 0 });
    },
  };
}

function makeOn(iii: Client): On {
  const on = ((definition: FunctionDefinition, handler: Handler, options?: { raw: true }) => {
    if (options === undefined) iii.serve(definition, handler);
    else iii.serve(definition, handler, options);
  }) as On;
  on.trigger = (spec) => void iii.registerTrigger(spec);
  return on;
}
