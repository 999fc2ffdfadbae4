// The client's public face: what a worker, a test or the browser can do on the bus.
import type { z } from "zod";
import type { FunctionDefinition, Handler, RegisterOptions, TriggerSpec } from "../definition.ts";
import type { Action } from "../protocol/frames.ts";
import type { ChannelReader, ChannelRef, ChannelWriter } from "./channel-port.ts";

export interface TriggerOptions {
  /** How long to wait for the answer, in ms. Default 30 000. 0 = as long as the executor's connection answers. */
  timeout_ms?: number;
  /** The same in the official SDK's spelling; `timeout_ms` wins when both are given. */
  timeoutMs?: number;
  action?: Action;
  metadata?: unknown;
  /** Aborting sends `cancel`; the promise then settles with what the executor answers, or rejects with `cancelled`. */
  signal?: AbortSignal;
  /** Marks the call as made for an agent. Lowers rights; cannot be undone by anyone on the way. */
  origin?: "agent";
  /** The session that a call marked as made for an agent belongs to. Believed of whoever runs the turns. */
  session_id?: string;
  /** Trace context to run under, instead of the ambient one. */
  traceparent?: string;
  /** Baggage to add to the ambient one. */
  baggage?: Record<string, string>;
}

export interface TriggerRequest extends TriggerOptions {
  function_id: string;
  payload?: unknown;
}

/** `connecting` before the first open, `connected`, `reconnecting` after a loss, `closed` after `close()`. */
export type ConnectionState = "connecting" | "connected" | "reconnecting" | "closed";

export interface Registration {
  readonly id: string;
  unregister(): void;
}

export interface Channel {
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  readonly writerRef: ChannelRef;
  readonly readerRef: ChannelRef;
}

/**
 * Calls a function and waits for its answer.
 * @throws BusError with the executor's or the engine's code: `function_not_found`, `TIMEOUT`, `invocation_stopped`, …
 */
export interface Trigger {
  <I extends z.ZodType, O extends z.ZodType>(
    definition: FunctionDefinition<I, O>,
    payload: z.input<I>,
    options?: TriggerOptions,
  ): Promise<z.output<O>>;
  <T = unknown>(function_id: string, payload?: unknown, options?: TriggerOptions): Promise<T>;
  <T = unknown>(request: TriggerRequest): Promise<T>;
}

/** What `trigger` calls: a definition, an id, or a whole request. */
export type TriggerTarget = FunctionDefinition | string | TriggerRequest;

/** A connection to the bus. Registrations and calls made while it is down are kept, and sent after it is back. */
export interface Iii {
  /** The id that the engine gave this connection; undefined until it is connected. */
  readonly worker_id: string | undefined;
  readonly state: ConnectionState;
  onState(listener: (state: ConnectionState) => void): () => void;

  readonly trigger: Trigger;

  registerFunction(id: string, handler: Handler, options?: RegisterOptions): Registration;
  /** Serves a definition: parses input, checks output, sends the schemas to the catalogue. */
  serve<I extends z.ZodType, O extends z.ZodType>(
    definition: FunctionDefinition<I, O>,
    handler: Handler<z.output<I>, z.input<O>>,
  ): Registration;
  /** The same with the input as it came, for functions that answer bad input with a union instead of an error. */
  serve<I extends z.ZodType, O extends z.ZodType>(
    definition: FunctionDefinition<I, O>,
    handler: Handler<unknown, z.input<O>>,
    options: { raw: true },
  ): Registration;
  registerTrigger(spec: TriggerSpec & { id?: string }): Registration;

  createChannel(options?: { buffer_size?: number }): Promise<Channel>;
  openWriter(ref: ChannelRef): ChannelWriter;
  openReader(ref: ChannelRef): ChannelReader;

  /** Stops taking calls, waits (bounded) for running handlers, and closes the connection. */
  close(options?: { drain_ms?: number }): Promise<void>;
}
