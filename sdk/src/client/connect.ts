// A connection to the bus: puts the link, the session, the waiting calls and the running handlers together.
import type { z } from "zod";
import type { FunctionDefinition, Handler, RegisterOptions, TriggerSpec } from "../definition.ts";
import { BusError, fromWire, toBusError } from "../errors.ts";
import { type Logger, silentLogger } from "../log-port.ts";
import type { Clock, Random } from "../ports.ts";
import type { Frame, FrameOf } from "../protocol/frames.ts";
import { systemClock, systemRandom } from "../system.ts";
import { within } from "../time.ts";
import { type Ambient, processAmbient } from "./ambient.ts";
import { type CallDeps, prepareCall, readCall, withoutResult } from "./call.ts";
import { Channels } from "./channel.ts";
import type { ChannelReader, ChannelRef, ChannelWriter } from "./channel-port.ts";
import { Connection } from "./connection.ts";
import { Executions } from "./execution.ts";
import { answerText, frameText, parseFrame } from "./frame-text.ts";
import type { Channel, ConnectionState, Registration, Trigger, TriggerOptions, TriggerRequest, TriggerTarget } from "./iii.ts";
import { type Announcement, announcementOf, type Client, type ConnectOptions } from "./options.ts";
import { PendingCalls } from "./pending.ts";
import { functionFrame, Registrations, type ServedFunction, triggerFrame } from "./registrations.ts";
import { serveDefinition } from "./serve.ts";

const MAX_QUEUED = 1_000;
const DRAIN_MS = 10_000;
const REGISTER = "engine::workers::register";

/** Connects, and keeps connected until `close()`. Returns at once; calls made before the connection is open wait for it. */
export function connect(options: ConnectOptions): Client {
  return new BusClient(options);
}

class BusClient implements Client {
  readonly #options: ConnectOptions;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Logger;
  readonly #ambient: Ambient;
  readonly #connection: Connection;
  readonly #session = new Registrations();
  readonly #pending: PendingCalls;
  readonly #executions: Executions;
  readonly #channels: Channels;
  readonly #callDeps: CallDeps;
  readonly #listeners = new Set<(state: ConnectionState) => void>();
  /** Calls made while the connection was down; `id` is undefined for calls that want no reply. */
  #queue: { id: string | undefined; text: string }[] = [];
  #announcement: Announcement | undefined;

  constructor(options: ConnectOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#log = options.log ?? silentLogger;
    this.#ambient = options.ambient ?? processAmbient;
    this.#pending = new PendingCalls(this.#clock);
    this.#callDeps = { random: this.#random, ambient: this.#ambient, owner: this, spans: options.spans, session: this.#session };
    this.#channels = new Channels(options.dialer);
    this.#executions = new Executions({
      clock: this.#clock,
      log: this.#log,
      ambient: this.#ambient,
      spans: options.spans,
      owner: this,
      find: (id) => this.#session.functions.get(id)?.handler,
    });
    if (options.announce === true && options.name !== undefined) this.#announcement = announcementOf(options, options.name);
    this.#connection = new Connection({
      dialer: options.dialer,
      path: "/",
      clock: this.#clock,
      random: this.#random,
      reconnect: options.reconnect,
      opened: () => this.#enter(),
      lost: (code, reason) => this.#leave(code, reason),
      message: (data) => this.#receive(data),
      changed: () => this.#notify(),
    });
    this.#connection.start();
  }

  get worker_id(): string | undefined {
    return this.#session.worker_id;
  }

  get state(): ConnectionState {
    const { phase, everOpen } = this.#connection;
    if (phase === "closed") return "closed";
    if (phase === "open") return "connected";
    return everOpen ? "reconnecting" : "connecting";
  }

  onState(listener: (state: ConnectionState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  readonly trigger = ((target: TriggerTarget, payload?: unknown, options?: TriggerOptions): Promise<unknown> => {
    try {
      const answer = this.#call(readCall(target, payload, options));
      return withoutResult(target) === null ? answer.then((value) => value ?? null) : answer;
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }) as Trigger;

  registerFunction(id: string, handler: Handler, options: RegisterOptions = {}): Registration {
    const served: ServedFunction = { id, handler, options };
    // Written first: what cannot be written is the caller's mistake now, and would break every later connection.
    const text = frameText(functionFrame(served));
    this.#session.functions.set(id, served);
    this.#connection.send(text);
    const unregister = (): void => {
      if (this.#session.functions.get(id) !== served) return;
      this.#session.functions.delete(id);
      this.#send({ type: "unregisterfunction", id });
    };
    return { id, unregister };
  }

  serve<I extends z.ZodType, O extends z.ZodType>(
    definition: FunctionDefinition<I, O>,
    handler: Handler<never, z.input<O>>,
    serving?: { raw: true },
  ): Registration {
    const { run, options } = serveDefinition(definition, handler, serving?.raw === true);
    return this.registerFunction(definition.id, run, options);
  }

  registerTrigger(spec: TriggerSpec & { id?: string }): Registration {
    const bound = { ...spec, id: spec.id ?? this.#random.uuid() };
    const text = frameText(triggerFrame(bound));
    this.#session.triggers.set(bound.id, bound);
    this.#connection.send(text);
    const unregister = (): void => {
      if (this.#session.triggers.delete(bound.id)) this.#send({ type: "unregistertrigger", id: bound.id, trigger_type: bound.type });
    };
    return { id: bound.id, unregister };
  }

  async createChannel(options: { buffer_size?: number } = {}): Promise<Channel> {
    const refs = await this.trigger<{ writer: ChannelRef; reader: ChannelRef }>("engine::channels::create", options);
    return this.#channels.pair(refs.writer, refs.reader);
  }

  openWriter(ref: ChannelRef): ChannelWriter {
    return this.#channels.writer(ref, "now");
  }

  openReader(ref: ChannelRef): ChannelReader {
    return this.#channels.reader(ref, "now");
  }

  async announce(info: Announcement): Promise<void> {
    this.#announcement = info;
    for (;;) {
      try {
        await this.trigger(REGISTER, info, { timeout_ms: 0 });
        return;
      } catch (error) {
        // Announcing twice is harmless, and the next call waits for the next connection.
        if (toBusError(error).code !== "disconnected" || this.#connection.phase === "closed") throw error;
      }
    }
  }

  async drain(ms = DRAIN_MS): Promise<void> {
    this.#session.leaving = true;
    for (const id of [...this.#session.functions.keys()]) this.#send({ type: "unregisterfunction", id });
    const idle = this.#executions.idle();
    if (this.#executions.size === 0 || ms <= 0) return;
    await within(this.#clock, ms, idle, () => undefined);
  }

  async close(options: { drain_ms?: number } = {}): Promise<void> {
    if (this.#connection.phase === "closed") return;
    await this.drain(options.drain_ms);
    const down = this.#connection.close();
    this.#queue = [];
    this.#executions.abandon();
    this.#pending.close();
    this.#channels.close();
    await down;
  }

  /** Open again: registrations first, then what waited, and the announcement last, so that announced means ready. */
  #enter(): void {
    for (const frame of this.#session.replay()) this.#send(frame);
    const queue = this.#queue;
    this.#queue = [];
    for (const { id, text } of queue) {
      if (id === undefined || this.#pending.has(id)) this.#sendCall(id, text);
    }
    if (this.#announcement !== undefined && !this.#session.leaving) {
      this.#send({ type: "invokefunction", function_id: REGISTER, action: { type: "void" }, data: this.#announcement });
    }
  }

  #leave(code: number, reason: string): void {
    this.#log.warn({ code, reason, address: this.#options.dialer.address }, "the connection was lost");
    this.#executions.abandon();
    this.#pending.lose(code);
  }

  #notify(): void {
    const { state } = this;
    this.#ambient.run(undefined, () => {
      for (const listener of [...this.#listeners]) listener(state);
    });
  }

  // Frames.

  /** Registrations are not queued: a new connection replays them from the session. */
  #send(frame: object): void {
    this.#connection.send(frameText(frame));
  }

  /** @throws BusError when the call cannot leave. */
  #call(request: TriggerRequest): Promise<unknown> {
    const { function_id, signal } = request;
    if (this.#connection.phase === "closed") throw new BusError("disconnected", `'${function_id}' was called on a closed client`);
    if (signal?.aborted === true) throw new BusError("cancelled", `'${function_id}' was cancelled before it was sent`);
    const call = prepareCall(request, this.#callDeps);
    this.#admit(function_id);
    if (call.invocation_id === undefined) {
      this.#sendCall(undefined, call.text);
      return Promise.resolve();
    }
    const answer = this.#pending.add(call.invocation_id, function_id, {
      timeout_ms: call.timeout_ms,
      signal,
      onCancel: (invocation_id) => this.#send({ type: "cancel", invocation_id }),
    });
    this.#sendCall(call.invocation_id, call.text);
    return answer;
  }

  /** @throws BusError `too_many_in_flight` when the queue of a connection that is down is full. */
  #admit(function_id: string): void {
    if (this.#connection.phase === "open" || this.#queue.length < MAX_QUEUED) return;
    throw new BusError("too_many_in_flight", `'${function_id}': ${MAX_QUEUED} calls already wait for the connection`);
  }

  #sendCall(id: string | undefined, text: string): void {
    if (this.#connection.phase !== "open") {
      this.#queue.push({ id, text });
      return;
    }
    if (id !== undefined) this.#pending.markSent(id);
    this.#connection.send(text);
  }

  #receive(data: Uint8Array): void {
    const frame = parseFrame(data, this.#log, (answer) => this.#send(answer));
    if (frame === undefined) return;
    switch (frame.type) {
      case "invokefunction":
        this.#serveCall(frame);
        return;
      case "invocationresult":
        this.#settle(frame);
        return;
      case "cancel":
        this.#executions.cancel(frame.invocation_id);
        return;
      case "workerregistered":
        this.#session.welcome(frame);
        return;
      case "triggerregistrationresult":
        if (frame.error !== undefined) this.#log.error({ ...frame }, "a trigger could not be registered");
        return;
      case "error":
        this.#log.error({ error: frame.error }, "the engine refused this connection");
        return;
      default:
    }
  }

  #serveCall(frame: Frame & { type: "invokefunction" }): void {
    const { epoch } = this.#connection;
    this.#executions.invoke(frame, (head, json) => {
      // An answer belongs to the connection that the call came on.
      if (this.#connection.epoch === epoch) this.#connection.send(answerText(head, json, this.#session.max_frame_bytes));
    });
  }

  #settle(frame: FrameOf<"invocationresult">): void {
    const { error } = frame;
    const known = this.#pending.settle(frame.invocation_id, error == null ? { value: frame.result } : { error: fromWire(error) });
    if (!known) this.#log.debug({ invocation_id: frame.invocation_id, function_id: frame.function_id }, "an answer that nobody waits for");
  }
}
