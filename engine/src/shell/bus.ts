// The core's shell: performs its effects on wires, built-ins and timers. It decides nothing that the core could decide.
import { isUtf8 } from "node:buffer";
import { type Clock, type Logger, messageOf, type Random, toBusError, toWire, type Wire, type WireHandlers } from "@iii/sdk";
import { frameParts } from "@iii/sdk/protocol";
import type { Access } from "../core/access.ts";
import { call } from "../core/calls.ts";
import type { Core, CoreLimits } from "../core/core.ts";
import type { BindingData, Effect, WorkerEvent } from "../core/effects.ts";
import { cancel, expire, settle, unwritable } from "../core/endings.ts";
import { Functions } from "../core/functions.ts";
import { connect, disconnect } from "../core/lifecycle.ts";
import { Marks } from "../core/marks.ts";
import { Invocations } from "../core/pending.ts";
import { bindRefused } from "../core/registrations.ts";
import { NOBODY } from "../core/rights.ts";
import { route } from "../core/router.ts";
import { Triggers } from "../core/triggers.ts";
import type { Caller, EngineInvocation, TriggerTypeSpec } from "../ports/host.ts";
import type { EngineTracer, Telemetry } from "../ports/tracer.ts";
import { BuiltinTypes } from "./bindings.ts";
import { type BuiltinDeps, runBuiltin, type Served } from "./builtin-calls.ts";
import { Deadlines } from "./deadlines.ts";
import { Drain } from "./drain.ts";
import { Heartbeat } from "./heartbeat.ts";
import { callRequest, OwnCalls } from "./own-calls.ts";
import { Pressure } from "./pressure.ts";
import { sendParts, type WireMeta } from "./wires.ts";

export interface BusOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly tracer: EngineTracer;
  readonly telemetry: Telemetry | undefined;
  readonly access: Access;
  readonly limits: CoreLimits & {
    readonly ping_interval_ms: number;
    readonly slow_consumer_ms: number;
    readonly max_buffered_bytes: number;
  };
}

type FunctionsListener = (change: { added: readonly string[]; removed: readonly string[] }) => void;
type WorkersListener = (event: { event: WorkerEvent; worker_id: string }) => void;

const TELEMETRY = ["OTLP", "MTRC", "LOGS"];
const ENGINE: Caller = { worker_id: "engine", kind: "engine", name: "engine" };
const decoder = new TextDecoder();

export class Bus {
  readonly core: Core;
  readonly builtins = new Map<string, Served>();
  readonly types = new BuiltinTypes();
  readonly onFunctions = new Set<FunctionsListener>();
  readonly onWorkers = new Set<WorkersListener>();
  readonly #options: BusOptions;
  readonly #wires = new Map<string, Wire>();
  readonly #own = new OwnCalls();
  readonly #builtinDeps: BuiltinDeps;
  readonly drain: Drain;
  readonly #deadlines: Deadlines;
  readonly #heartbeat: Heartbeat;
  readonly #pressure: Pressure;
  #effects: Effect[] = [];
  #applying = false;
  #dead = false;

  constructor(options: BusOptions) {
    const { clock, random, limits, access, tracer } = options;
    this.#options = options;
    this.core = {
      functions: new Functions(),
      triggers: new Triggers(),
      connections: new Map(),
      invocations: new Invocations(),
      access,
      marks: new Marks(),
      limits,
      now: () => clock.monotonic(),
      dateOf: (at) => clock.now() + at - clock.monotonic(),
      uuid: () => random.uuid(),
      draining: false,
    };
    this.#builtinDeps = {
      functions: this.builtins,
      access,
      tracer,
      caller: (id) => this.#caller(id),
      done: (id, outcome) => this.#change((out) => settle(this.core, id, outcome, out)),
    };
    this.drain = new Drain(this.core, clock);
    this.#deadlines = new Deadlines({
      clock,
      next: () => this.core.invocations.nextDeadline(),
      due: () => this.#change((out, now) => expire(this.core, now, out)),
    });
    const drop = (id: string, reason: string): void => this.drop(id, reason);
    const pressure = new Pressure({ ...limits, clock, drop: (id) => drop(id, "slow_consumer") });
    this.#pressure = pressure;
    const paused = (id: string): boolean => pressure.isPaused(id);
    this.#heartbeat = new Heartbeat({ clock, interval_ms: limits.ping_interval_ms, paused, silent: (id) => drop(id, "silent") });
  }

  serve(served: Served): void {
    this.builtins.set(served.definition.id, served);
    this.core.functions.addBuiltin(served.definition.id);
  }

  addType(spec: TriggerTypeSpec): void {
    this.types.add(spec);
    this.core.triggers.addBuiltin(spec.id);
  }

  /** A worker's wire has opened. */
  accept(wire: Wire, meta: WireMeta): WireHandlers {
    const out: Effect[] = [];
    const about = {
      kind: meta.origin === undefined ? ("worker" as const) : ("browser" as const),
      remote: meta.remote,
      principal: meta.principal ?? NOBODY,
    };
    const id = connect(this.core, about, this.#options.clock.now(), out);
    this.#wires.set(id, wire);
    this.#heartbeat.watch(id, wire);
    this.apply(out);
    return {
      message: (data, binary) => this.#message(id, data, binary),
      alive: () => this.#heartbeat.alive(id),
      drain: () => this.#pressure.drained(id),
      close: () => this.#lost(id),
    };
  }

  /** Calls a function as the engine. */
  async invoke(request: EngineInvocation): Promise<unknown> {
    if (this.#dead) return new Promise(() => {});
    const id = request.invocation_id ?? this.#options.random.uuid();
    const prepared = callRequest(request, id);
    const answer = this.#own.wait(id);
    this.#change((out, now) => call(this.core, prepared, now, out));
    return answer;
  }

  cancel(invocation_id: string): void {
    this.#change((out, now) => cancel(this.core, invocation_id, now, out));
  }

  /** Ends a connection from this side: its peer has earned no closing handshake. */
  drop(id: string, reason: string): void {
    this.#options.log.warn({ worker_id: id, name: this.core.connections.get(id)?.announced?.name, reason }, "a connection was dropped");
    this.#change((out) => {
      disconnect(this.core, id, out);
      out.push({ type: "drop", conn: id, reason });
    });
  }

  apply(effects: readonly Effect[]): void {
    if (this.#dead) return;
    for (const effect of effects) this.#effects.push(effect);
    if (this.#applying) return;
    this.#applying = true;
    for (let i = 0; i < this.#effects.length && !this.#dead; i += 1) this.#perform(this.#effects[i] as Effect);
    this.#effects = [];
    this.#applying = false;
    this.drain.check();
    if (!this.#dead) this.#deadlines.arm();
  }

  /** Ends every connection. With `crash`, as a killed process would: nothing more is answered, nobody is told. */
  shut(how: "stop" | "crash"): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#deadlines.stop();
    this.#heartbeat.stop();
    this.#pressure.stop();
    for (const wire of this.#wires.values()) {
      if (how === "crash") wire.terminate();
      else wire.close(1001, "the engine is stopping");
    }
    this.#wires.clear();
    if (how === "crash") return;
    this.#own.stop();
  }

  #change(change: (out: Effect[], now: number) => void): void {
    if (this.#dead) return;
    const out: Effect[] = [];
    change(out, this.#options.clock.monotonic());
    this.apply(out);
  }

  #message(id: string, data: Uint8Array, binary: boolean): void {
    this.#heartbeat.alive(id);
    const conn = this.core.connections.get(id);
    if (conn === undefined || this.#dead) return;
    if (binary && TELEMETRY.includes(decoder.decode(data.subarray(0, 4)))) {
      this.#options.telemetry?.ingest(data, id);
      return;
    }
    // A text message was checked by the transport; a binary one is passed on as text and must not break its receiver.
    if (binary && !isUtf8(data)) return;
    this.#change((out, now) => route(this.core, conn, data, now, out));
  }

  #lost(id: string): void {
    this.#forget(id);
    if (this.core.connections.has(id)) this.#change((out) => disconnect(this.core, id, out));
    this.#options.telemetry?.closed(id);
  }

  #forget(id: string): void {
    this.#wires.delete(id);
    this.#heartbeat.forget(id);
    this.#pressure.forget(id);
  }

  #caller(id: string | null): Caller {
    const conn = id === null ? undefined : this.core.connections.get(id);
    if (id === null) return ENGINE;
    return { worker_id: id, kind: conn?.kind ?? "worker", name: conn?.announced?.name };
  }

  /** Never throws: one effect that fails must not take the others with it. */
  #perform(effect: Effect): void {
    try {
      this.#performUnsafe(effect);
    } catch (thrown) {
      this.#options.log.error({ err: thrown, effect: effect.type }, "an effect failed");
      if (effect.type === "send") this.#change((out) => unwritable(this.core, effect, messageOf(thrown), out));
    }
  }

  #performUnsafe(effect: Effect): void {
    switch (effect.type) {
      case "send":
        this.#send(effect);
        return;
      case "run":
        runBuiltin(this.#builtinDeps, effect.run);
        return;
      case "settle":
        this.#own.settle(effect.id, effect.outcome, effect.answered);
        return;
      case "drop":
        this.#cut(effect.conn, effect.reason);
        return;
      case "bind":
        this.#bind(effect.binding);
        return;
      case "unbind":
        this.types.unbind(effect.binding);
        return;
      case "functions":
        for (const listener of [...this.onFunctions]) listener(effect);
        return;
      case "worker":
        for (const listener of [...this.onWorkers]) listener(effect);
        return;
      case "note":
        this.#options.log[effect.level](effect.fields, effect.message);
    }
  }

  #send(effect: Extract<Effect, { type: "send" }>): void {
    const wire = this.#wires.get(effect.conn);
    if (wire === undefined) return;
    const size = sendParts(wire, frameParts(effect.head, effect.payloadKey, effect.payload, effect.splice));
    const from = effect.from === null ? undefined : this.#wires.get(effect.from);
    const sender = from === undefined || effect.from === null ? undefined : { id: effect.from, wire: from };
    this.#pressure.sent(effect.conn, wire, size, sender);
  }

  #cut(id: string, reason: string): void {
    const wire = this.#wires.get(id);
    this.#forget(id);
    if (reason === "slow_consumer") wire?.close(1008, reason);
    wire?.terminate();
  }

  #bind(binding: BindingData): void {
    try {
      this.types.bind(binding);
    } catch (thrown) {
      const error = toWire(toBusError(thrown, "trigger_registration_failed"));
      this.#change((out) => bindRefused(this.core, binding, error, out));
    }
  }
}
