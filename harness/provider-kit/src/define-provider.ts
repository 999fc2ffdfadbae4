// A provider spec as a worker: serves `provider::<name>::stream` and `::complete`, finds credential and model, guards the channel.
import { type AssistantMessage, type GenerateRequest, type Model, providerComplete, providerStream } from "@iii/contracts";
import { BusError, type Call, type ChannelWriter, defineWorker, type Iii, type WorkerContext, type WorkerDefinition } from "@iii/sdk";
import { authGetToken, Credential } from "@iii/worker-auth-credentials/contract";
import type { z } from "zod";
import { fetchTransport, type Transport } from "./exchange/http.ts";
import { generate, type Job, type Report, type Sink } from "./generate.ts";
import { type ModelBook, modelBook } from "./models.ts";
import { endpointUrl } from "./request/endpoint.ts";
import type { ErrorKind, ProviderSettings, ProviderSpec } from "./spec.ts";

export interface ProviderOptions<C> {
  /** How requests leave. Default: HTTP by `fetch`. */
  transport?: (context: WorkerContext<C>) => Transport;
}

const CREDENTIAL_MS = 5_000;

/** A refusal before any request: it becomes the terminal `error` event, like every other failure. */
class Refused extends Error {
  readonly kind: ErrorKind;
  constructor(kind: ErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

type Need = "required" | "optional" | "none";

async function credentialOf(iii: Iii, spec: { name: string; credential_env?: string }, need: Need): Promise<Credential | undefined> {
  if (need === "none") return undefined;
  const hint = `set ${spec.credential_env ?? "the provider's key"} or call auth::set_token {"provider":"${spec.name}",…}`;
  let found: unknown;
  try {
    found = await iii.trigger(authGetToken, { provider: spec.name }, { timeout_ms: CREDENTIAL_MS });
  } catch (thrown) {
    if (need === "optional") return undefined;
    const code = thrown instanceof BusError ? thrown.code : "invocation_failed";
    const kind = thrown instanceof BusError && thrown.retryable ? "transient" : "auth_expired";
    throw new Refused(kind, `credential_missing: auth::get_token answered ${code}; ${hint}`);
  }
  const parsed = Credential.safeParse(found);
  if (parsed.success || need === "optional") return parsed.data;
  throw new Refused("auth_expired", `credential_missing: no key for ${spec.name}: ${hint}`);
}

function refusal(provider: string, request: GenerateRequest, thrown: unknown, now: number): AssistantMessage {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const error_kind = thrown instanceof Refused ? thrown.kind : "permanent";
  return {
    role: "assistant",
    content: [],
    stop_reason: "error",
    error_message: message,
    error_kind,
    model: request.model,
    provider,
    timestamp: now,
  };
}

function channelSink(writer: ChannelWriter): Sink {
  return { send: (event) => writer.send(JSON.stringify(event)), signal: writer.signal };
}

/** A sink that keeps nothing: `complete` needs only the final message. */
const nowhere = (): Sink => ({ send: () => Promise.resolve(), signal: new AbortController().signal });

class Provider<S, C extends ProviderSettings> {
  readonly #spec: ProviderSpec<S, C>;
  readonly #context: WorkerContext<C>;
  readonly #transport: Transport;
  readonly #url: string;
  readonly #models: ModelBook;

  constructor(spec: ProviderSpec<S, C>, context: WorkerContext<C>, transport: Transport, models: ModelBook) {
    this.#spec = spec;
    this.#context = context;
    this.#transport = transport;
    this.#url = endpointUrl(spec.endpoint, context.config);
    this.#models = models;
  }

  async #job(request: GenerateRequest, signal: AbortSignal): Promise<Job<C>> {
    const { name } = this.#spec;
    const need = this.#context.config.credential ?? this.#spec.credential ?? "required";
    const [lookup, credential] = await Promise.all([this.#models.find(request.model), credentialOf(this.#context.iii, this.#spec, need)]);
    if (!lookup.known) {
      const hint = `models::list {"provider":"${name}"} shows the known ones, models::register adds one`;
      throw new Refused("permanent", `model_unknown: ${name} has no model '${request.model}'; ${hint}`);
    }
    return { request, config: this.#context.config, url: this.#url, credential, model: lookup.model, signal };
  }

  /** Answers with the final message; whatever fails is told to the sink as the terminal `error`. */
  async answer(request: GenerateRequest, signal: AbortSignal, sink: Sink): Promise<AssistantMessage> {
    const { clock, random } = this.#context;
    let job: Job<C>;
    try {
      job = await this.#job(request, signal);
    } catch (thrown) {
      const message = refusal(this.#spec.name, request, thrown, clock.now());
      await sink.send({ type: "start" }).catch(() => {});
      await sink.send({ type: "error", error: message }).catch(() => {});
      return message;
    }
    const report = await generate(this.#spec, job, { transport: this.#transport, clock, random }, sink);
    this.#note(report);
    return report.message;
  }

  #note({ message, attempts, repairs }: Report): void {
    const { stop_reason, error_kind, usage, model } = message;
    this.#context.log.debug({ model, stop_reason, error_kind, usage, attempts, repairs }, "model call ended");
  }

  async stream(writer: ChannelWriter, request: GenerateRequest, call: Call): Promise<{ ok: boolean; status: string }> {
    try {
      const message = await this.answer(request, call.signal, channelSink(writer));
      return { ok: message.stop_reason !== "error" && message.stop_reason !== "aborted", status: message.stop_reason };
    } finally {
      await writer.close().catch(() => {});
    }
  }
}

/** A model out of the provider's config as a whole row. */
function ownModel(spec: { readonly name: string; readonly models: readonly Model[] }, own: ProviderSettings["models"][number]): Model {
  const api = spec.models[0]?.api ?? spec.name;
  return { ...own, api: own.api ?? api, display_name: own.display_name ?? own.id, provider: spec.name };
}

/** Makes a worker of a provider spec. */
export function defineProvider<S, C extends ProviderSettings>(
  spec: ProviderSpec<S, C>,
  options: ProviderOptions<C> = {},
): WorkerDefinition<z.ZodType<C>> {
  return defineWorker({
    name: `provider-${spec.name}`,
    config: spec.config,
    register(on, context) {
      const { iii, clock, log, config } = context;
      const needs_key = (config.credential ?? spec.credential ?? "required") === "required";
      const known = [...spec.models, ...config.models.map((own) => ownModel(spec, own))].map((model) => ({ needs_key, ...model }));
      const models = modelBook({ iii, clock, log, provider: spec.name, models: known });
      const transport = options.transport?.(context) ?? fetchTransport();
      const provider = new Provider(spec, context, transport, models);
      // The function itself names its models too: without a catalogue that is where a page reads what can run.
      const stream = providerStream(spec.name);
      on({ ...stream, metadata: { ...stream.metadata, models: known } }, ({ writer_ref, ...request }, call) =>
        provider.stream(iii.openWriter(writer_ref), request, call),
      );
      on(providerComplete(spec.name), (request, call) => provider.answer(request, call.signal, nowhere()));
      return { ready: () => models.announce(), stop: () => models.stop() };
    },
  });
}
