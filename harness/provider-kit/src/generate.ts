// One model answer from request to terminal event: attempts, retries, usage and price. Never throws; ends exactly once.
import type { AssistantMessage, AssistantMessageEvent, GenerateRequest, Model, StopReason, Usage } from "@iii/contracts";
import type { Clock, Random } from "@iii/sdk";
import type { Credential } from "@iii/worker-auth-credentials/contract";
import { type Assembly, newAssembly } from "./answer/assemble.ts";
import type { Outcome } from "./answer/rule.ts";
import { type Scrubber, scrubber } from "./answer/scrub.ts";
import { callIds } from "./answer/tool-call-ids.ts";
import { completed, priced, promptTokens } from "./answer/usage.ts";
import { attempt } from "./exchange/attempt.ts";
import { MAX_ANSWER_BYTES, tooLarge } from "./exchange/folding.ts";
import type { Transport } from "./exchange/http.ts";
import { Ended, type Patience, patience } from "./exchange/patience.ts";
import { inWords } from "./failures.ts";
import { heal, originOf } from "./request/doctor.ts";
import { secretsOf, shaped } from "./request/shape.ts";
import { toolNames } from "./request/tool-names.ts";
import type { Failure, HttpRequest, ProviderSettings, ProviderSpec } from "./spec.ts";

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
  /** What the doctor did to the conversation before it was sent. */
  readonly repairs: readonly string[];
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

class Generation<S, C extends ProviderSettings> {
  readonly #spec: ProviderSpec<S, C>;
  readonly #job: Job<C>;
  readonly #deps: Deps;
  readonly #sink: Sink;
  readonly #names;
  readonly #scrubber: Scrubber;
  #assembly: Assembly;
  #started = false;
  #accepted = false;
  attempts = 0;
  repairs: readonly string[] = [];

  constructor(spec: ProviderSpec<S, C>, job: Job<C>, deps: Deps, sink: Sink) {
    this.#spec = spec;
    this.#job = job;
    this.#deps = deps;
    this.#sink = sink;
    this.#names = toolNames(job.request.tools.map((tool) => tool.name));
    this.#scrubber = scrubber(secretsOf(job.url, job.config, job.credential));
    this.#assembly = this.#fresh();
  }

  #fresh(): Assembly {
    const decodeName = (name: string) => this.#names.decode(name);
    return newAssembly({ callId: callIds(this.#job.request.messages), decodeName, scrubber: this.#scrubber });
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
    const { name: provider, takes } = this.#spec;
    const healed = heal(request, { provider, url, takes, vision: model?.supports_vision !== false });
    this.repairs = healed.repairs;
    const context = { config, url, credential, model, toolName: (name: string) => this.#names.encode(name) };
    return shaped(this.#spec.request(healed.request, context), config, credential);
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
      scrubber: this.#scrubber,
      tell: (events) => this.#tell(events),
      now: () => this.#deps.clock.now(),
      accepted: () => {
        this.#accepted = true;
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
    await this.#tell(this.#assembly.close());
    const usage = this.#usage(true);
    const message = this.#message(outcome.stop, undefined, usage);
    const failure = this.#unfit(message, usage);
    if (failure !== undefined) return this.#finish("error", failure);
    await this.#tell([
      { type: "usage", usage },
      { type: "stop", stop_reason: outcome.stop },
      { type: "done", message },
    ]);
    return message;
  }

  /** Why an answer that came out well cannot be used: servers that cut a prompt in silence take one that is larger than the window. */
  #unfit(message: AssistantMessage, usage: Usage): Failure | undefined {
    const size = Buffer.byteLength(JSON.stringify(message));
    if (size > MAX_ANSWER_BYTES) return tooLarge;
    const window = this.#job.model?.context_window;
    if (window === undefined || usage.estimated === true || promptTokens(usage) <= window) return undefined;
    return { kind: "context_overflow", message: `the prompt took ${promptTokens(usage)} tokens of a context window of ${window}` };
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
    const message = this.#message(stop, failure, this.#lostUsage(stop));
    try {
      if (this.#started) await this.#tell(closing);
      if (message.usage != null) await this.#tell([{ type: "usage", usage: message.usage }]);
      await this.#tell([{ type: "error", error: message }]);
    } catch {
      // The channel is closed: the caller has the message as this function's value.
    }
    return message;
  }

  #usage(whole: boolean): Usage {
    const { usage, chars } = this.#assembly;
    return priced(completed(usage, this.#job.request, chars, whole), this.#job.model?.pricing);
  }

  /** Tokens that were spent on an answer nobody gets whole. A request that no server took, or that brought nothing, cost nothing. */
  #lostUsage(stop: "error" | "aborted"): Usage | undefined {
    const { usage, started } = this.#assembly;
    const waited = this.#accepted && stop === "aborted";
    return started || waited || Object.keys(usage).length > 0 ? this.#usage(false) : undefined;
  }

  #message(stop: StopReason, failure: Failure | undefined, usage: Usage | undefined): AssistantMessage {
    const { job, vendor } = { job: this.#job, vendor: this.#assembly.vendor };
    return {
      role: "assistant",
      content: this.#assembly.content(failure === undefined),
      stop_reason: stop,
      ...(failure === undefined ? {} : this.#mark(stop, failure)),
      ...(usage === undefined ? {} : { usage }),
      model: job.request.model,
      provider: this.#spec.name,
      timestamp: this.#deps.clock.now(),
      ...(failure === undefined ? { vendor: { origin: originOf(job.url), ...vendor } } : {}),
    };
  }

  #mark(stop: StopReason, { kind, message, retry_after_ms }: Failure): Partial<AssistantMessage> {
    return {
      error_message: this.#scrubber.message(inWords(message)),
      ...(stop === "aborted" ? {} : { error_kind: kind }),
      ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
    };
  }
}

/** Generates one answer into `sink`: `start` first, deltas as they come, one of `done` and `error` last. */
export async function generate<S, C extends ProviderSettings>(
  spec: ProviderSpec<S, C>,
  job: Job<C>,
  deps: Deps,
  sink: Sink,
): Promise<Report> {
  const generation = new Generation(spec, job, deps, sink);
  const message = await generation.run();
  return { message, attempts: generation.attempts, repairs: generation.repairs };
}
