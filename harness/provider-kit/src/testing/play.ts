// Runs a provider spec against bytes instead of a server: the whole path of the kit but for the socket.
import { type AssistantMessage, type AssistantMessageEvent, GenerateRequest, type Model } from "@iii/contracts";
import type { Clock } from "@iii/sdk";
import { ManualClock, seededRandom } from "@iii/sdk/testing";
import type { Credential } from "@iii/worker-auth-credentials/contract";
import type { z } from "zod";
import type { Opened, Transport } from "../exchange/http.ts";
import { generate, type Sink } from "../generate.ts";
import type { HttpRequest, ProviderSettings, ProviderSpec } from "../spec.ts";

/** What the stand-in server does with one request. `lost` breaks the connection after the chunks. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly chunks?: readonly Uint8Array[];
  readonly lost?: string;
}

export interface Played {
  readonly events: readonly AssistantMessageEvent[];
  readonly message: AssistantMessage;
  readonly attempts: number;
  readonly repairs: readonly string[];
  readonly requests: readonly HttpRequest[];
}

export interface PlayOptions {
  readonly request?: z.input<typeof GenerateRequest>;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly credential?: Credential;
  /** Where the spec's requests go. Default: its own address. */
  readonly url?: string;
  readonly model?: Model;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  readonly sink?: Partial<Sink>;
  /** Overrides the replies with a transport of one's own. */
  readonly transport?: Transport;
}

async function* bodyOf(reply: Reply): AsyncGenerator<Uint8Array> {
  for (const chunk of reply.chunks ?? []) yield chunk;
  if (reply.lost !== undefined) throw new Error(reply.lost);
}

/** A transport that gives one reply after the other; the last one repeats. */
function replies(list: readonly Reply[], seen: HttpRequest[]): Transport {
  return (request): Promise<Opened> => {
    const reply = list[Math.min(seen.length, list.length - 1)] ?? {};
    seen.push(request);
    const headers = { "content-type": "text/event-stream", ...reply.headers };
    return Promise.resolve({ status: reply.status ?? 200, headers, body: bodyOf(reply) });
  };
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Generates one answer from the replies and collects everything that was told. */
export async function play<S, C extends ProviderSettings>(
  spec: ProviderSpec<S, C>,
  list: readonly Reply[],
  options: PlayOptions = {},
): Promise<Played> {
  const events: AssistantMessageEvent[] = [];
  const requests: HttpRequest[] = [];
  const keep = async (event: AssistantMessageEvent) => void events.push(event);
  const never = new AbortController().signal;
  const report = await generate(
    spec,
    {
      request: GenerateRequest.parse(options.request ?? { model: "m", messages: [] }),
      config: spec.config.parse(options.config ?? {}),
      url: options.url ?? spec.endpoint.url,
      credential: options.credential,
      model: options.model,
      signal: options.signal ?? never,
    },
    { transport: options.transport ?? replies(list, requests), clock: options.clock ?? new ManualClock(0), random: seededRandom(1) },
    { send: keep, signal: never, ...options.sink },
  );
  return { ...report, events, requests };
}

/** The HTTP request that a provider makes of a request, as it would leave. */
export async function requestOf<S, C extends ProviderSettings>(
  spec: ProviderSpec<S, C>,
  request: z.input<typeof GenerateRequest>,
  options: Omit<PlayOptions, "request"> = {},
): Promise<HttpRequest & { readonly body: Record<string, unknown> }> {
  const { requests } = await play(spec, [{ status: 400 }], { ...options, request });
  const [made] = requests;
  if (made === undefined) throw new Error("no request was made");
  return { ...made, body: made.body as Record<string, unknown> };
}
