// The one place that talks to a vendor's server.
import { wellFormed } from "@iii/contracts/well-formed";
import type { Headers, HttpRequest } from "../spec.ts";

export interface Opened {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Headers;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Sends a request and gives its answer as it comes. Aborting the signal closes the connection. */
export type Transport = (request: HttpRequest, signal: AbortSignal) => Promise<Opened>;

/** Only what says where: a query or user info may hold a secret. */
function place(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : "the provider";
}

function reason(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "unknown reason";
  const { cause } = thrown;
  if (typeof cause === "object" && cause !== null && "code" in cause) return String(cause.code);
  return cause instanceof Error ? cause.message : thrown.message;
}

async function* noBody(): AsyncGenerator<Uint8Array> {}

/** A transport over `fetch`. Redirects are not followed: they would carry the key elsewhere. */
export function fetchTransport(fetcher: typeof fetch = fetch): Transport {
  return async (request, signal) => {
    try {
      const response = await fetcher(request.url, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "text/event-stream, application/json", ...request.headers },
        body: JSON.stringify(wellFormed(request.body)),
        redirect: "manual",
        signal,
      });
      return { status: response.status, headers: Object.fromEntries(response.headers), body: response.body ?? noBody() };
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      throw new Error(`could not reach ${place(request.url)}: ${reason(thrown)}`, { cause: thrown });
    }
  };
}
