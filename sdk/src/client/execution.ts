// Runs the handlers of one connection: finds the function, sets its call up, turns what it does into an answer.

import type { Call, Handler } from "../definition.ts";
import type { ErrorBody } from "../errors.ts";
import { BusError, stackOf, toBusError, toWire } from "../errors.ts";
import type { Logger } from "../log-port.ts";
import type { Clock, Timer } from "../ports.ts";
import type { CallContext, FrameOf } from "../protocol/frames.ts";
import { ResultHead } from "../protocol/heads.ts";
import { capture } from "../secrets.ts";
import type { Ambient, CallScope } from "./ambient.ts";
import { formatBaggage, parseBaggage } from "./baggage.ts";
import { isThenable, toJson } from "./frame-text.ts";
import type { ActiveSpan, SpanSink } from "./spans.ts";
import { callAttributes } from "./trace-ids.ts";

export interface ExecutionDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly ambient: Ambient;
  readonly spans: SpanSink | undefined;
  /** The connection, as scopes name it. */
  readonly owner: object;
  find(function_id: string): Handler | undefined;
}

/** What a handler made of its call: an error, or its result as JSON text (undefined: no result). */
type Outcome = { readonly error: ErrorBody } | { readonly json: string | undefined };

/** Sends one answer: the head of the frame, and the JSON text of its `result`. */
export type Answer = (head: ResultHead, json: string | undefined) => void;

/** One run of a handler. */
interface Run {
  readonly function_id: string;
  readonly scope: CallScope;
  readonly span: ActiveSpan | undefined;
  readonly lazy: LazySignal;
}

interface Running {
  readonly cancel: (reason: string) => void;
  readonly done: Promise<void>;
}

/** Ids of calls that have ended are remembered, so that a frame that comes twice runs once. */
const REMEMBERED = 1_000;

/** How long the call may still take. An engine that says only the date of the deadline is believed on the wall clock. */
function leftMs(context: CallContext | undefined, clock: Clock): number | null {
  if (context === undefined) return null;
  if (context.remaining_ms !== undefined) return context.remaining_ms;
  return context.deadline_ms === null ? null : context.deadline_ms - clock.now();
}

/** Made on first use: most handlers never look at their signal. */
class LazySignal {
  readonly #clock: Clock;
  /** On the monotonic clock. */
  readonly #deadline: number | null;
  #controller: AbortController | undefined;
  #timer: Timer | undefined;
  #reason: string | undefined;

  constructor(clock: Clock, left_ms: number | null) {
    this.#clock = clock;
    this.#deadline = left_ms === null ? null : clock.monotonic() + left_ms;
  }

  get signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;
    this.#controller = new AbortController();
    if (this.#reason !== undefined) this.#abort(this.#reason);
    else if (this.#deadline !== null) {
      this.#timer = this.#clock.setTimer(() => this.abort("the call's deadline has passed"), this.#deadline - this.#clock.monotonic());
    }
    return this.#controller.signal;
  }

  abort(reason: string): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#abort(reason);
  }

  release(): void {
    this.#timer?.cancel();
  }

  #abort(reason: string): void {
    this.#timer?.cancel();
    this.#controller?.abort(new BusError("cancelled", reason));
  }
}

export class Executions {
  readonly #deps: ExecutionDeps;
  readonly #running = new Map<string, Running>();
  readonly #recent = new Set<string>();
  /** The same ids in a ring, the next to be forgotten at `#next`. */
  #order: string[] = [];
  #next = 0;
  #voids = 0;

  constructor(deps: ExecutionDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#running.size;
  }

  /** Serves one invocation. `answer` is called at most once; never when the caller wants no reply. */
  invoke(frame: FrameOf<"invokefunction">, answer: Answer): void {
    const { invocation_id, function_id } = frame;
    const id = invocation_id ?? "";
    if (id !== "" && (this.#running.has(id) || this.#recent.has(id))) {
      this.#deps.log.warn({ invocation_id: id, function_id }, "an invocation arrived twice; the second is ignored");
      return;
    }
    const reply = (outcome: Outcome): void => {
      if (invocation_id === undefined) return;
      const { traceparent, baggage } = frame;
      const error = "error" in outcome ? outcome.error : undefined;
      answer(new ResultHead({ invocation_id, function_id, traceparent, baggage, error }), "json" in outcome ? outcome.json : undefined);
    };
    const handler = this.#deps.find(function_id);
    if (handler === undefined) {
      reply({ error: { code: "function_not_found", message: `this worker does not serve '${function_id}'` } });
      return;
    }
    this.#start(frame, handler, reply);
  }

  /** The caller no longer wants the answer. The handler is told and still answers. */
  cancel(id: string): void {
    this.#running.get(id)?.cancel("the caller cancelled the call");
  }

  /** The connection is gone: nobody waits for these answers any more. */
  abandon(): void {
    for (const running of [...this.#running.values()]) running.cancel("the connection was lost");
    this.#running.clear();
    this.#recent.clear();
    this.#order = [];
    this.#next = 0;
  }

  /** Resolves when every handler that runs now has answered. */
  async idle(): Promise<void> {
    await Promise.all([...this.#running.values()].map((running) => running.done));
  }

  /** A handler that answers at once costs no promise. */
  #start(frame: FrameOf<"invokefunction">, handler: Handler, reply: (outcome: Outcome) => void): void {
    const key = frame.invocation_id ?? `void:${++this.#voids}`;
    const run = this.#begin(frame);
    let value: unknown;
    try {
      const call = new HandlerCall(frame, run.scope, run.lazy);
      const body = (): unknown => this.#deps.ambient.run(run.scope, () => handler(frame.data, call));
      value = run.span === undefined ? body() : run.span.run(body);
    } catch (thrown) {
      this.#remember(key);
      reply(this.#failed(run, thrown));
      return;
    }
    if (!isThenable(value)) {
      this.#remember(key);
      reply(this.#succeeded(run, value));
      return;
    }
    const finish = (outcome: Outcome): void => {
      // Only this run's own entry: after a reconnect the map belongs to another connection's calls.
      if (this.#running.get(key) === entry) {
        this.#running.delete(key);
        this.#remember(key);
      }
      reply(outcome);
    };
    const done = Promise.resolve(value).then(
      (result: unknown) => finish(this.#succeeded(run, result)),
      (thrown: unknown) => finish(this.#failed(run, thrown)),
    );
    const entry: Running = { cancel: (reason) => run.lazy.abort(reason), done };
    this.#running.set(key, entry);
  }

  #remember(id: string): void {
    const oldest = this.#order[this.#next];
    if (oldest !== undefined) this.#recent.delete(oldest);
    this.#order[this.#next] = id;
    this.#next = (this.#next + 1) % REMEMBERED;
    this.#recent.add(id);
  }

  #begin(frame: FrameOf<"invokefunction">): Run {
    const { function_id, traceparent } = frame;
    const { spans, owner, clock } = this.#deps;
    const traced = spans !== undefined || traceparent !== undefined;
    const incoming = parseBaggage(frame.baggage);
    const attributes = traced ? callAttributes(function_id, frame.data, incoming) : {};
    const span = spans?.start({ name: `execute ${function_id}`, kind: "internal", traceparent, attributes });
    const scope: CallScope = {
      owner,
      invocation_id: frame.invocation_id ?? "",
      origin: frame.context?.origin,
      traceparent: span?.traceparent ?? traceparent,
      baggage: traced ? { ...incoming, ...attributes } : incoming,
      spans,
      running: true,
    };
    this.#payload(span, "iii.invocation.input", frame.data, true);
    return { function_id, scope, span, lazy: new LazySignal(clock, leftMs(frame.context, clock)) };
  }

  #succeeded(run: Run, result: unknown): Outcome {
    let json: string | undefined;
    try {
      json = toJson(result, `the result of '${run.function_id}'`);
    } catch (thrown) {
      return this.#failed(run, thrown);
    }
    run.scope.running = false;
    run.lazy.release();
    this.#payload(run.span, "iii.invocation.output", result, true);
    run.span?.end();
    return { json };
  }

  #failed(run: Run, thrown: unknown): Outcome {
    const { function_id, span } = run;
    run.scope.running = false;
    run.lazy.release();
    const error = toBusError(thrown);
    if (!(thrown instanceof BusError)) this.#deps.log.error({ function_id, err: thrown }, "a handler failed");
    this.#payload(span, "iii.invocation.output", { error: error.message }, false);
    const stack = stackOf(thrown);
    span?.event("exception", { "exception.type": error.code, "exception.message": error.message, "exception.stacktrace": stack });
    span?.end({ code: error.code, message: error.message });
    return { error: toWire(error) };
  }

  #payload(span: ActiveSpan | undefined, name: string, value: unknown, ok: boolean): void {
    if (span === undefined || span.recording === false || this.#deps.spans?.payloads !== true) return;
    const { json, truncated } = capture(value);
    span.event(name, { "iii.payload.json": json, "iii.payload.truncated": String(truncated), "iii.payload.ok": String(ok) });
  }
}

/** What a handler is told. A class, because one is made for every call and most are never looked at. */
class HandlerCall implements Call {
  readonly #frame: FrameOf<"invokefunction">;
  readonly #scope: CallScope;
  readonly #lazy: LazySignal;

  constructor(frame: FrameOf<"invokefunction">, scope: CallScope, lazy: LazySignal) {
    this.#frame = frame;
    this.#scope = scope;
    this.#lazy = lazy;
  }

  get invocation_id(): string {
    return this.#scope.invocation_id;
  }
  get function_id(): string {
    return this.#frame.function_id;
  }
  get metadata(): unknown {
    return this.#frame.metadata;
  }
  get context(): CallContext | undefined {
    return this.#frame.context;
  }
  get signal(): AbortSignal {
    return this.#lazy.signal;
  }
  get traceparent(): string | undefined {
    return this.#scope.traceparent;
  }
  get baggage(): string | undefined {
    return formatBaggage(this.#scope.baggage);
  }
}
