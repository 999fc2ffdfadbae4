// The composition root: core and shell, storage, built-ins and the paths that wires may open. Opens no port by itself.
import { BusError, type Clock, type Logger, type Random, type Wire, type WireHandlers } from "@iii/sdk";
import type { EngineConfig } from "./config.ts";
import type { Builtin, ChannelMaker, EngineHost } from "./ports/host.ts";
import type { WireService } from "./ports/registry.ts";
import type { Store } from "./ports/store.ts";
import { type EngineTracer, noTracer, type Telemetry } from "./ports/tracer.ts";
import type { Served } from "./shell/builtin-calls.ts";
import { Bus, type WireMeta } from "./shell/bus.ts";
import { parsePath } from "./shell/paths.ts";
import { makeRegistry } from "./shell/registry.ts";

export interface EngineDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
  readonly log: Logger;
  /** The store has failed and the engine serves nothing any more: the process should end. */
  readonly fatal?: (error: BusError) => void;
}

export interface EngineOptions {
  readonly config: Pick<EngineConfig, "human_only" | "protected_scopes" | "limits">;
  readonly deps: EngineDeps;
  readonly builtins: readonly Builtin[];
}

export interface Engine {
  readonly host: EngineHost;
  /** The largest message a wire may carry. */
  readonly max_frame_bytes: number;
  /** HTTP status of an upgrade to this path: 101, or why not (400, 404, 503). */
  check(path: string): number;
  /** Takes a wire that has opened on `path`; undefined when no wire may open there. */
  accept(path: string, wire: Wire, meta?: WireMeta): WireHandlers | undefined;
  /** Installs and starts the built-ins in order. */
  start(): Promise<void>;
  /** Before `stop`: takes no new workers and starts no new work; resolves when what runs has ended, after 5 s at the latest. */
  drain(): Promise<void>;
  /** Ends every connection, then the built-ins in reverse order. The store stays open: whoever made it closes it. */
  stop(): Promise<void>;
  /** As if the process had been killed: nothing is finished, answered or cleaned up. */
  crash(): void;
}

const MAX_REGISTRATIONS = 1_000;
const CANCEL_GRACE_MS = 5_000;
const DRAIN_MS = 5_000;

export function createEngine({ config, deps, builtins }: EngineOptions): Engine {
  const { clock, random, log } = deps;
  const observed = builtins.find((builtin) => builtin.tracer !== undefined);
  const tracer: EngineTracer = { start: (name, options) => (observed?.tracer ?? noTracer).start(name, options) };
  const telemetry = builtins.find((builtin) => builtin.telemetry !== undefined)?.telemetry;
  const channels = builtins.find((builtin) => builtin.channels !== undefined)?.channels ?? noChannels;
  const bounds = { max_functions: MAX_REGISTRATIONS, max_triggers: MAX_REGISTRATIONS, cancel_grace_ms: CANCEL_GRACE_MS };
  const limits = { ...config.limits, ...bounds };
  const bus = new Bus({ clock, random, log, tracer, telemetry, rules: config, limits });
  const services = new Map<string, WireService>();
  const host = makeHost(bus, { ...deps, tracer, channels }, services);
  const wires = new Set<Wire>();
  let running: { stop?(): void | Promise<void> }[] = [];
  let phase: "new" | "up" | "down" = "new";

  const check = (path: string): number => {
    const { service, rest, query } = parsePath(path);
    if (phase !== "up") return 503;
    if (bus.core.draining && service === "") return 503;
    if (service === "" || service === "otel") return rest === "" ? 101 : 404;
    return services.get(service)?.check(rest, query) ?? 404;
  };

  return {
    host,
    max_frame_bytes: config.limits.max_frame_bytes,
    check,
    accept(path, wire, meta = {}) {
      if (check(path) !== 101) return undefined;
      const { service, rest, query } = parsePath(path);
      if (service === "") return bus.accept(wire, meta);
      const handlers = service === "otel" ? telemetryHandlers(random.uuid(), telemetry) : services.get(service)?.accept(rest, query, wire);
      return handlers === undefined ? undefined : tracked(wires, wire, handlers);
    },
    async start() {
      const installed = builtins.map((builtin) => builtin.install(host));
      for (const part of installed) {
        await part.start?.();
        running = [part, ...running];
      }
      phase = "up";
    },
    drain: () => bus.drain.start(DRAIN_MS),
    async stop() {
      if (phase === "down") return;
      phase = "down";
      bus.shut("stop");
      for (const wire of wires) wire.close(1001, "the engine is stopping");
      for (const part of running) await part.stop?.();
    },
    crash() {
      phase = "down";
      bus.shut("crash");
      for (const wire of wires) wire.terminate();
    },
  };
}

const noChannels: ChannelMaker = {
  open() {
    throw new BusError("channel_send_failed", "this engine has no channels");
  },
};

/** Remembers a wire for as long as it is open. */
function tracked(wires: Set<Wire>, wire: Wire, handlers: WireHandlers): WireHandlers {
  wires.add(wire);
  return {
    ...handlers,
    close(code, reason) {
      wires.delete(wire);
      handlers.close(code, reason);
    },
  };
}

function telemetryHandlers(source: string, telemetry: Telemetry | undefined): WireHandlers {
  return {
    message: (data, binary) => {
      if (binary) telemetry?.ingest(data, source);
    },
    close: () => telemetry?.closed(source),
  };
}

type HostDeps = EngineDeps & { readonly tracer: EngineTracer; readonly channels: ChannelMaker };

function makeHost(bus: Bus, deps: HostDeps, services: Map<string, WireService>): EngineHost {
  const { clock, random, log, store, tracer, channels } = deps;
  const registry = makeRegistry({
    core: bus.core,
    random,
    functions: bus.builtins,
    types: bus.types,
    apply: (effects) => bus.apply(effects),
  });
  const listen = <T>(set: Set<T>, listener: T): (() => void) => {
    set.add(listener);
    return () => void set.delete(listener);
  };
  return {
    clock,
    random,
    log,
    store,
    tracer,
    channels,
    registry,
    handle: (owner, definition, handler, options) =>
      bus.serve({ owner, definition, handler: handler as Served["handler"], untraced: options?.untraced as Served["untraced"] }),
    triggerType: (spec) => bus.addType(spec),
    invoke: (request) => bus.invoke(request),
    cancel: (id) => bus.cancel(id),
    isServed: (id) => bus.core.functions.has(id),
    onFunctions: (listener) => listen(bus.onFunctions, listener),
    onWorkers: (listener) => listen(bus.onWorkers, listener),
    serveWires: (prefix, service) => void services.set(prefix, service),
    fatal(error) {
      log.error({ err: error }, "the engine cannot keep its promises any more and stops serving");
      bus.shut("crash");
      deps.fatal?.(error);
    },
  };
}
