// testBus: the real engine on a memory store and an in-process transport, driven by a manual clock. Nothing here imitates anything.
import {
  type Client,
  connect,
  type FunctionDefinition,
  type Logger,
  silentLogger,
  startWorker,
  type TriggerOptions,
  type WorkerDefinition,
} from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";
import { ManualClock, seededRandom, settle } from "@iii/sdk/testing";
import type { z } from "zod";
import { defaultBuiltins } from "../builtins.ts";
import { defaultEngineConfig, type EngineConfig } from "../config.ts";
import type { EntryRights } from "../core/rights.ts";
import { createEngine, type Engine } from "../engine.ts";
import { createMemoryStore, type MemoryStore } from "../storage/memory.ts";
import { linkedDialer } from "../transport/linked.ts";

// biome-ignore lint/suspicious/noExplicitAny: a worker of any config type; `unknown` would refuse all of them
type AnyWorker = WorkerDefinition<any>;
export type WorkerSpec = AnyWorker | { worker: AnyWorker; config?: unknown };

export interface TestBusOptions {
  store?: MemoryStore;
  clock?: ManualClock;
  /** Changes to the default engine config. */
  config?: z.input<typeof EngineConfig>;
  seed?: number;
  log?: Logger;
  /** Folder that relative paths in worker configs start from. */
  root?: string;
  /** Workers record their spans, as they do in the engine's process. */
  trace?: boolean;
}

export interface ConnectAs {
  readonly origin?: string;
  readonly as?: Principal;
}

export interface TestBus {
  readonly clock: ManualClock;
  readonly engine: Engine;
  readonly store: MemoryStore;
  /** Calls a function with the operator's key. */
  call<I extends z.ZodType, O extends z.ZodType>(
    definition: FunctionDefinition<I, O>,
    payload: z.input<I>,
    options?: TriggerOptions,
  ): Promise<z.output<O>>;
  call<T = unknown>(function_id: string, payload?: unknown, options?: TriggerOptions): Promise<T>;
  /**
   * One more connection. With `origin`, the engine takes it for a browser. It is proven to be an entry that may claim and call everything
   * and takes the agent's mark as a tool does; `as` makes it somebody else.
   */
  connect(name?: string, options?: ConnectAs): Promise<Client>;
  /** The entries that there are; a test may add some. */
  readonly entries: Map<string, EntryRights>;
  /** Lets everything run that needs no time. */
  settle(): Promise<void>;
  /**
   * Kills engine and workers as a power cut would, and starts them again on the same store.
   * Connections from `connect` stay and find their way back, as processes of their own would.
   */
  crash(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts an engine with these workers and waits until all of them are ready. */
export async function testBus(workers: readonly WorkerSpec[] = [], options: TestBusOptions = {}): Promise<TestBus> {
  const bus = new Bench(workers, options);
  await bus.boot();
  return bus;
}

/** The rights of who is not what a test is about. */
const EVERYTHING: EntryRights = { provides: ["*"], calls: ["*"] };

/** A running generation: what a crash takes down together. */
interface Generation {
  readonly engine: Engine;
  readonly clients: Client[];
  readonly stops: (() => Promise<void>)[];
  alive: boolean;
}

class Bench implements TestBus {
  readonly clock: ManualClock;
  store: MemoryStore;
  readonly entries = new Map<string, EntryRights>();
  readonly #workers: readonly WorkerSpec[];
  readonly #config: EngineConfig;
  readonly #random;
  readonly #log: Logger;
  readonly #root: string;
  readonly #trace: boolean;
  readonly #guests: Client[] = [];
  #generation: Generation | undefined;
  #driver: Client | undefined;

  constructor(workers: readonly WorkerSpec[], options: TestBusOptions) {
    this.clock = options.clock ?? new ManualClock();
    this.store = options.store ?? createMemoryStore();
    this.#workers = workers;
    this.#config = defaultEngineConfig({ store: "memory", ...options.config });
    this.#random = seededRandom(options.seed ?? 1);
    this.#log = options.log ?? silentLogger;
    this.#root = options.root ?? ".";
    this.#trace = options.trace ?? false;
  }

  get engine(): Engine {
    if (this.#generation === undefined) throw new Error("the bus is not running");
    return this.#generation.engine;
  }

  async boot(): Promise<void> {
    const deps = { clock: this.clock, random: this.#random, store: this.store, log: this.#log };
    const engine = createEngine({ config: this.#config, deps, builtins: defaultBuiltins(this.#config), entries: this.entries });
    const generation: Generation = { engine, clients: [], stops: [], alive: true };
    this.#generation = generation;
    await engine.start();
    this.#driver ??= await this.connect("test", { as: { kind: "operator", name: "test" } });
    for (const spec of this.#workers) await this.#startWorker(generation, spec);
    await settle();
  }

  call(target: FunctionDefinition | string, payload?: unknown, options?: TriggerOptions): Promise<never> {
    if (this.#driver === undefined) throw new Error("the bus is not running");
    const function_id = typeof target === "string" ? target : target.id;
    return this.#driver.trigger<never>(function_id, payload, options);
  }

  async connect(name = "guest", options: ConnectAs = {}): Promise<Client> {
    const { origin, as = this.#guest() } = options;
    const meta = { principal: as, ...(origin === undefined ? {} : { origin }) };
    const dialer = linkedDialer(() => this.#generation?.engine, meta);
    const client = connect({ dialer, clock: this.clock, random: this.#random, log: this.#log, name, announce: true });
    this.#guests.push(client);
    await settle();
    return client;
  }

  #guest(): Principal {
    const name = `guest-${this.#guests.length}`;
    this.entries.set(name, { ...EVERYTHING, control: false });
    return { kind: "entry", name };
  }

  settle(): Promise<void> {
    return settle();
  }

  async crash(): Promise<void> {
    const generation = this.#generation;
    if (generation === undefined) return;
    generation.alive = false;
    generation.engine.crash();
    this.#generation = undefined;
    // What a killed process would no longer do: these clients never come back, and their timers and watchers go.
    for (const client of generation.clients) void client.close({ drain_ms: 0 });
    for (const stop of generation.stops) stop().catch(() => undefined);
    await settle();
    this.store = this.store.reopen();
    await this.boot();
    // Guests come back by their own backoff.
    await this.clock.advance(2_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const generation = this.#generation;
    if (generation === undefined) return;
    for (const stop of generation.stops.toReversed()) await this.#patiently(stop());
    for (const guest of this.#guests) await guest.close({ drain_ms: 0 });
    await generation.engine.stop();
    this.#generation = undefined;
  }

  /** Moves time on while something ends that may wait for it. */
  async #patiently(ending: Promise<void>): Promise<void> {
    let ended = false;
    const watched = ending.finally(() => {
      ended = true;
    });
    await settle();
    for (let second = 0; second < 30 && !ended; second += 1) await this.clock.advance(1_000);
    await watched;
  }

  async #startWorker(generation: Generation, spec: WorkerSpec): Promise<void> {
    const { worker, config } = "worker" in spec ? spec : { worker: spec, config: undefined };
    // After a crash, what is left of a killed worker must not come back and act beside its successor.
    if (!this.entries.has(worker.name)) this.entries.set(worker.name, EVERYTHING);
    const principal = { kind: "entry", name: worker.name } as const;
    const dialer = linkedDialer(() => (generation.alive ? generation.engine : undefined), { principal });
    const common = { clock: this.clock, random: this.#random, log: this.#log };
    const spans = this.#trace ? generation.engine.telemetry?.spans(worker.name) : undefined;
    const iii = connect({ ...common, dialer, name: worker.name, spans });
    generation.clients.push(iii);
    const started = await startWorker(worker, { ...common, iii, config: config ?? {}, root: this.#root });
    generation.stops.push(() => started.stop());
  }
}
