// The composition root: core and shell, storage, built-ins and the paths that wires may open. Opens no port by itself.
import { BusError, type Clock, type Logger, type Random, type Wire, type WireHandlers } from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";
import type { EngineConfig } from "./config.ts";
import { Access } from "./core/access.ts";
import { type EntryRights, NOBODY } from "./core/rights.ts";
import type { Builtin, ChannelMaker, EngineHost } from "./ports/host.ts";
import type { WireService } from "./ports/registry.ts";
import type { Store } from "./ports/store.ts";
import type { TokenStore } from "./ports/tokens.ts";
import { type EngineTracer, noTracer, type Telemetry } from "./ports/tracer.ts";
import type { Served } from "./shell/builtin-calls.ts";
import { Bus } from "./shell/bus.ts";
import { parsePath, type WirePath } from "./shell/paths.ts";
import { makeRegistry } from "./shell/registry.ts";
import { Tokens } from "./shell/tokens.ts";
import type { WireMeta } from "./shell/wires.ts";

export interface EngineDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
  readonly log: Logger;
  /** Keeps the tokens that outlive the engine. */
  readonly tokens?: TokenStore;
  /** The store has failed and the engine serves nothing any more: the process should end. */
  readonly fatal?: (error: BusError) => void;
}

export interface EngineOptions {
  readonly config: Pick<EngineConfig, "access" | "auth" | "limits">;
  /** The entries of config.yaml by name; read at each decision. Default: none, and so nobody provides a protected id. */
  readonly entries?: ReadonlyMap<string, EntryRights>;
  readonly deps: EngineDeps;
  readonly builtins: readonly Builtin[];
}

export interface Engine {
  readonly host: EngineHost;
  /** The largest message a wire may carry. */
  readonly max_frame_bytes: number;
  readonly tokens: Tokens;
  /** Where workers in this process leave their spans and log records. */
  readonly telemetry: Telemetry | undefined;
  /** HTTP status of an upgrade to this path: 101, or why not (400, 401, 404, 503). */
  check(path: string, meta?: WireMeta): number;
  /** Takes a wire that has opened on `path`; undefined when no wire may open there. */
  accept(path: string, wire: Wire, meta?: WireMeta): WireHandlers | undefined;
  /** Opens the store, then installs and starts the built-ins in order. */
  start(): Promise<void>;
  /** Before `stop`: takes no new workers and starts no new work; resolves when what runs has ended, after 5 s at the latest. */
  drain(): Promise<void>;
  /** Ends every connection, then the built-ins in reverse order. The store stays open: whoever made it closes it. */
  stop(): Promise<void>;
  /** As if the process had been killed: nothing is finished, answered or cleaned up. */
  crash(): void;
}

/** What no configuration changes. */
const BOUNDS = { max_functions: 1_000, max_triggers: 1_000, cancel_grace_ms: 5_000, overdue_ms: 30_000 };
const DRAIN_MS = 5_000;

export function createEngine({ config, deps, builtins, entries }: EngineOptions): Engine {
  const { clock, random, log } = deps;
  const observed = builtins.find((builtin) => builtin.tracer !== undefined);
  const tracer: EngineTracer = { start: (name, options) => (observed?.tracer ?? noTracer).start(name, options) };
  const telemetry = builtins.find((builtin) => builtin.telemetry !== undefined)?.telemetry;
  const channels = builtins.find((builtin) => builtin.channels !== undefined)?.channels ?? noChannels;
  const access = new Access({ add: config.access.add, ...(entries === undefined ? {} : { entries }) });
  const bus = new Bus({ clock, random, log, tracer, telemetry, access, limits: { ...config.limits, ...BOUNDS } });
  const tokens = new Tokens(random, deps.tokens);
  const services = new Map<string, WireService>();
  const host = makeHost(bus, { ...deps, tracer, channels, issuer: tokens }, services);
  const wires = new Set<Wire>();
  let running: { stop?(): void | Promise<void> }[] = [];
  let phase: "new" | "up" | "down" = "new";

  const principalOf = (token: string | undefined, meta: WireMeta) => whose(tokens, config.auth, token, meta);
  const check = (path: string, meta: WireMeta = {}): number => {
    if (phase !== "up") return 503;
    const { token, ...where } = parsePath(path);
    return principalOf(token, meta) === undefined ? 401 : statusAt(bus, services, where);
  };

  return {
    host,
    tokens,
    telemetry,
    max_frame_bytes: config.limits.max_frame_bytes,
    check,
    accept(path, wire, meta = {}) {
      if (check(path, meta) !== 101) return undefined;
      const { token, service, rest, query } = parsePath(path);
      if (service === "") return bus.accept(wire, { ...meta, principal: principalOf(token, meta) });
      const handlers = service === "otel" ? telemetryHandlers(random.uuid(), telemetry) : services.get(service)?.accept(rest, query, wire);
      return handlers === undefined ? undefined : tracked(wires, wire, handlers);
    },
    async start() {
      await deps.store.open();
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

function statusAt(bus: Bus, services: ReadonlyMap<string, WireService>, { service, rest, query }: Omit<WirePath, "token">): number {
  if (bus.core.draining && service === "") return 503;
  if (service === "" || service === "otel") return rest === "" ? 101 : 404;
  return services.get(service)?.check(rest, query) ?? 404;
}

/** Whose wire this is; undefined: its token is unknown, or it shows none where one is required. */
function whose(tokens: Tokens, auth: EngineConfig["auth"], token: string | undefined, meta: WireMeta): Principal | undefined {
  if (meta.principal !== undefined) return meta.principal;
  if (token !== undefined) return tokens.find(token);
  return auth === "required" ? undefined : NOBODY;
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

type HostDeps = EngineDeps & { readonly issuer: Tokens; readonly tracer: EngineTracer; readonly channels: ChannelMaker };

function makeHost(bus: Bus, deps: HostDeps, services: Map<string, WireService>): EngineHost {
  const { clock, random, log, store, tracer, channels, issuer } = deps;
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
    tokens: issuer,
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
