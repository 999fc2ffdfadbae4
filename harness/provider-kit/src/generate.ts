// One model answer from request to terminal event: attempts, retries, usage and price. Never throws; ends exactly once.
import type { AssistantMessage, AssistantMessageEvent, GenerateRequest, Model, StopReason, Usage } from "@iii/contracts";
import type { Clock, Random } from "@iii/sdk";
import type { z } from "zod";
import { type Assembly, newAssembly, settleStop } from "./answer/assemble.ts";
import { estimatedUsage, priced } from "./answer/price.ts";
import { callIds } from "./answer/tool-call-ids.ts";
import { attempt, type Outcome } from "./exchange/attempt.ts";
import type { Transport } from "./exchange/http.ts";
import { Ended, type Patience, patience } from "./exchange/patience.ts";
import { redactor } from "./redact.ts";
import { toolNames } from "./request/tool-names.ts";
import type { Credential, Failure, HttpRequest, ProviderSettings, ProviderSpec } from "./spec.ts";

/** Where the events go. `send` may wait (backpressure) and may reject once the reader is gone. */
export interface Sink {
  send(event: AssistantMessageEvent): Promise<void>;
  readonly signal: AbortSignal;
}

export interface Deps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Job<C extends ProviderSettings> {
  readonly request: GenerateRequest;
  readonly config: C;
  readonly url: string;
  readonly credential: Credential | undefined;
  readonly model: Model | undefined;
  readonly signal: AbortSignal;
}

export interface Report {
  readonly message: AssistantMessage;
  readonly attempts: number;
  readonly unknown_events: number;
}

const RETRY_BASE_MS = 500;

function retriable(failure: Failure): boolean {
  return failure.retry ?? (failure.kind === "rate_limited" || failure.kind === "transient");
}

/** Doubling pause with half of it left to chance; the vendor's own wish comes first and is never cut short. */
function pauseMs(failure: Failure, tried: number, random: Random): number {
  const backoff = RETRY_BASE_MS * 2 ** (tried - 1);
  return failure.retry_after_ms ?? backoff / 2 + (backoff / 2) * random.float();
}

class Generation<W extends z.ZodType, S, C extends ProviderSettings> {
  readonly #spec: ProviderSpec<W, S, C>;
  readonly #job: Job<C>;
  readonly #deps: Deps;
  readonly #sink: Sink;
  readonly #names;
  readonly #redact;
  #assembly: Assembly;
  #started = false;
  attempts = 0;
  unknown = 0;

  constructor(spec: ProviderSpec<W, S, C>, job: Job<C>, deps: Deps, sink: Sink) {
    this.#spec = spec;
    this.#job = job;
    this.#deps = deps;
    this.#sink = sink;
    this.#names = toolNames(job.request.tools.map((tool) => tool.name));
    this.#redact = redactor(job.credential);
    this.#assembly = this.#fresh();
  }

  #fresh(): Assembly {
    const decodeName = (name: string) => this.#names.decode(name);
    return newAssembly({ callId: callIds(this.#job.request.messages), decodeName });
  }

  async run(): Promise<AssistantMessage> {
    const { config, signal } = this.#job;
    const timers = { idle_ms: config.idle_timeout_ms, total_ms: config.total_timeout_ms };
    const limits = patience({ clock: this.#deps.clock, ...timers, callers: [signal, this.#sink.signal] });
    try {
      return await this.#settle(await this.#try(limits));
    } catch (thrown) {
      return await this.#failed(thrown);
    } finally {
      limits.dispose();
    }
  }

  #httpRequest(): HttpRequest {
    const { request, config, url, credential, model } = this.#job;
    return this.#spec.request(request, { config, url, credential, model, toolName: (name) => this.#names.encode(name) });
  }

  async #try(limits: Patience): Promise<Outcome> {
    const request = this.#httpRequest();
    const { max_retries, max_retry_delay_ms } = this.#job.config;
    for (;;) {
      this.attempts += 1;
      this.#assembly = this.#fresh();
      const outcome = await this.#attempt(request, limits);
      if (outcome.type === "end" || this.#assembly.started || !retriable(outcome.failure)) return outcome;
      const pause = pauseMs(outcome.failure, this.attempts, this.#deps.random);
      if (this.attempts > max_retries || pause > max_retry_delay_ms) return outcome;
      await limits.sleep(pause);
    }
  }

  #attempt(request: HttpRequest, limits: Patience): Promise<Outcome> {
    return attempt({
      spec: this.#spec,
      request,
      transport: this.#deps.transport,
      patience: limits,
      assembly: this.#assembly,
      tell: (events) => this.#tell(events),
      now: () => this.#deps.clock.now(),
      unknown: () => {
        this.unknown += 1;
      },
    });
  }

  async #tell(events: readonly AssistantMessageEvent[]): Promise<void> {
    if (events.length === 0) return;
    if (!this.#started) {
      this.#started = true;
      await this.#sink.send({ type: "start" });
    }
    for (const event of events) await this.#sink.send(event);
  }

  async #settle(outcome: Outcome): Promise<AssistantMessage> {
    if (outcome.type === "fail") return this.#finish("error", outcome.failure);
    const stop = settleStop(outcome.stop, this.#assembly.hasCalls);
    await this.#tell(this.#assembly.close());
    const usage = priced(this.#assembly.usage, this.#job.model?.pricing);
    const message = this.#message(stop, undefined, usage);
    await this.#tell([
      { type: "usage", usage },
      { type: "stop", stop_reason: stop },
      { type: "done", message },
    ]);
    return message;
  }

  #failed(thrown: unknown): Promise<AssistantMessage> {
    if (this.#sink.signal.aborted || (thrown instanceof Ended && thrown.by === "caller")) {
      return this.#finish("aborted", { kind: "permanent", message: "aborted by the caller" });
    }
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return this.#finish("error", { kind: thrown instanceof Ended ? "transient" : "permanent", message });
  }

  /** Ends with the `error` event. A reader that is gone is told nothing. */
  async #finish(stop: "error" | "aborted", failure: Failure): Promise<AssistantMessage> {
    const closing = this.#assembly.close();
    const message = this.#message(stop, failure, this.#lostUsage());
    try {
      if (this.#started) await this.#tell(closing);
      if (message.usage != null) await this.#tell([{ type: "usage", usage: message.usage }]);
      await this.#tell([{ type: "error", error: message }]);
    } catch {
      // The channel is closed: the caller has the message as this function's value.
    }
    return message;
  }

  /** Tokens that were spent on an answer nobody gets whole. A call that never produced anything cost nothing that we know of. */
  #lostUsage(): Usage | undefined {
    const { usage, started, chars } = this.#assembly;
    if (!started && Object.keys(usage).length === 0) return undefined;
    return priced(estimatedUsage(usage, this.#job.request, chars), this.#job.model?.pricing);
  }

  #message(stop: StopReason, failure: Failure | undefined, usage: Usage | undefined): AssistantMessage {
    return {
      role: "assistant",
      content: this.#assembly.content(failure === undefined),
      stop_reason: stop,
      ...(failure === undefined
        ? {}
        : { error_message: this.#redact(failure.message), ...(stop === "aborted" ? {} : { error_kind: failure.kind }) }),
      ...(usage === undefined ? {} : { usage }),
      model: this.#job.request.model,
      provider: this.#spec.name,
      timestamp: this.#deps.clock.now(),
    };
  }
}

/** Generates one answer into `sink`: `start` first, deltas as they come, one of `done` and `error` last. */
export async function generate<W extends z.ZodType, S, C extends ProviderSettings>(
  spec: ProviderSpec<W, S, C>,
  job: Job<C>,
  deps: Deps,
  sink: Sink,
): Promise<Report> {
  const generation = new Generation(spec, job, deps, sink);
  const message = await generation.run();
  return { message, attempts: generation.attempts, unknown_events: generation.unknown };
}
