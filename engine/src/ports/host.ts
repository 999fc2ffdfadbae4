// What a built-in worker gets from the engine: the one door between `builtin/<name>` and the rest of the engine.
import {
  BusError,
  type ChannelRef,
  type Clock,
  type FunctionDefinition,
  type Logger,
  type Random,
  type Wire,
  type WireHandlers,
} from "@iii/sdk";
import type { CallContext, Principal } from "@iii/sdk/protocol";
import type { z } from "zod";
import type { BindingData } from "../core/effects.ts";
import type { Registry, WireService } from "./registry.ts";
import type { Store } from "./store.ts";
import type { EngineTracer, Telemetry } from "./tracer.ts";

/** Nobody who proved anything. */
export { NOBODY } from "../core/rights.ts";

/** Who makes a call. `engine` is the engine itself (triggers, queues, HTTP). */
export interface Caller {
  readonly worker_id: string;
  readonly kind: "worker" | "browser" | "engine";
  /** The announced name, when there is one. */
  readonly name: string | undefined;
}

/** What a built-in's handler is told about the call it serves. */
export interface BuiltinCall {
  readonly invocation_id: string;
  readonly caller: Caller;
  readonly context: CallContext;
  /** The invocation this call is nested in. Checked: it is running on the caller's connection now. */
  readonly parent: string | undefined;
  readonly metadata: unknown;
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
}

export type Binding = BindingData;

export interface TriggerTypeSpec {
  readonly id: string;
  readonly description: string;
  /** Reported as `worker_name` in the catalogue, e.g. `iii-state`. */
  readonly owner: string;
  readonly config: z.ZodType;
  /** Called with a binding whose config has been parsed. @throws BusError to refuse it (`trigger_registration_failed`). */
  bind(binding: Binding): void;
  unbind(binding: Binding): void;
}

export interface EngineInvocation {
  readonly function_id: string;
  /** The payload as a value … */
  readonly payload?: unknown;
  /** … or as JSON text already made (queues keep it so). */
  readonly raw?: string;
  readonly metadata?: unknown;
  readonly traceparent?: string | undefined;
  readonly baggage?: string | undefined;
  /** The mark that the work carried when it was stored: it never upgrades on delivery. Default `engine`. */
  readonly origin?: CallContext["origin"] | undefined;
  /** The session of that mark. */
  readonly session?: string | undefined;
  /** Whose call stored the work, made the event or sent the request. Default: nobody who proved anything. */
  readonly principal?: Principal | undefined;
  /** Who bound the trigger that makes the call: what is called is called with its right. */
  readonly by?: Principal | undefined;
  readonly depth?: number | undefined;
  /** ms; 0 = as long as the executor's connection answers. */
  readonly timeout_ms?: number;
  /** Chosen by the caller when it must know the id before the call leaves. */
  readonly invocation_id?: string;
  /** A delivery of a queue, which bounds their number: it takes no place of the executor's own. */
  readonly lease?: boolean;
}

export interface HandleOptions<I> {
  /** Calls for which this is true leave no span unless they fail, and their handler's call is marked as not sampled. */
  readonly untraced?: (input: I) => boolean;
}

/** A channel whose one end the engine holds. The other end travels to a client as a reference. */
export interface EngineChannel {
  readonly writer: ChannelRef;
  readonly reader: ChannelRef;
  /** Somebody has opened this side. */
  taken(side: "read" | "write"): boolean;
  /** Takes one side for the engine. The channel uses `wire` as it would a socket; frames go in through what this returns. */
  attach(side: "read" | "write", wire: Wire): WireHandlers;
  /** Ends both sides and forgets the channel. */
  end(): void;
}

/** Makes and ends the tokens by which connections say who they are. */
export interface TokenIssuer {
  /** With `keep` the token is still known after the engine has ended. */
  issue(principal: Principal & { kind: "operator" | "entry" }, keep?: boolean): Promise<string>;
  add(token: string, principal: Principal): void;
  revoke(token: string): void;
}

export interface ChannelMaker {
  /** `frames` may wait in the channel before its writer is paused. */
  open(frames: number): EngineChannel;
}

/** A call of the engine ended without a word of its executor: it never got the call, went away or was too late. */
export class Unanswered extends BusError {}

/** The engine, as its built-ins see it. */
export interface EngineHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly store: Store;
  readonly tracer: EngineTracer;
  readonly channels: ChannelMaker;
  readonly tokens: TokenIssuer;

  /** Serves a built-in function. No worker can claim its id. `owner` is the `worker_name` in the catalogue. */
  handle<I extends z.ZodType, O extends z.ZodType>(
    owner: string,
    definition: FunctionDefinition<I, O>,
    handler: (input: z.output<I>, call: BuiltinCall) => z.input<O> | Promise<z.input<O>>,
    options?: HandleOptions<z.output<I>>,
  ): void;
  triggerType(spec: TriggerTypeSpec): void;

  /** Calls a function as the engine. @throws BusError as any caller would get it; `Unanswered` when it is not the executor's. */
  invoke(call: EngineInvocation): Promise<unknown>;
  /** Ends a call made with `invoke`: the executor is told `cancel`. */
  cancel(invocation_id: string): void;
  /** Whether a live owner serves this id now. */
  isServed(function_id: string): boolean;
  /** Runs after every change of the set of served ids, with the ids that came and went. Returns the unsubscriber. */
  onFunctions(listener: (change: { added: readonly string[]; removed: readonly string[] }) => void): () => void;
  /** Runs when a connection has announced itself, changed or ended. */
  onWorkers(
    listener: (event: { event: "worker_connected" | "worker_metadata_updated" | "worker_disconnected"; worker_id: string }) => void,
  ): () => void;

  /** What is on the bus now. */
  readonly registry: Registry;
  /** Serves wires under `/<prefix>/…` on every listener. */
  serveWires(prefix: string, service: WireService): void;

  /** Ends the process's promise to serve: a failed durable write. Nothing is acknowledged after it. */
  fatal(error: BusError): void;
}

/** A built-in: installs its functions and trigger types; `start` runs once when the engine starts, `stop` at its end. */
export interface Builtin {
  readonly name: string;
  /** Set by the built-in that records spans: the engine's own spans go there … */
  readonly tracer?: EngineTracer;
  /** … and so does what arrives on telemetry wires. */
  readonly telemetry?: Telemetry;
  /** Set by the built-in that makes channels: the others get theirs from it. */
  readonly channels?: ChannelMaker;
  install(host: EngineHost): { start?(): void | Promise<void>; stop?(): void | Promise<void> };
}
