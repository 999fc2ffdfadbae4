// The port between the HTTP listener and what answers: plain values, no sockets.
import type { Principal } from "@iii/sdk/protocol";

export interface HttpRequest {
  readonly method: string;
  /** As it stands in the request line, without the query, not decoded. */
  readonly path: string;
  readonly query: string;
  /** Who sent it, as far as a token says so. */
  readonly principal?: Principal | undefined;
  /** Lower-case names; repeats joined as Node joins them. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body. @throws BusError `payload_too_large` as soon as it is longer than `limit`. */
  readBody(limit: number): Promise<Uint8Array>;
  /** The body in pieces as they come, read no faster than it is iterated. Either this or `readBody`, once. */
  body(): AsyncIterable<Uint8Array>;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

/** Where the pieces of a streamed body go. */
export interface BodySink {
  write(piece: Uint8Array): void;
  /** Bytes that the client has not taken yet. */
  readonly buffered: number;
  end(): void;
  /** The body cannot be finished: the client must see that it was cut short. */
  abort(): void;
}

/** A body that comes in pieces. Opened once, by the listener; `drain` is called when the sink has room again. */
export type BodyStream = (sink: BodySink) => { drain(): void };

export interface HttpResponse {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body?: Uint8Array | string | BodyStream;
}

/** Answers a request. Never throws. */
export type HttpFront = (request: HttpRequest) => Promise<HttpResponse>;

export function jsonResponse(status: number, value: unknown, headers: HttpResponse["headers"] = []): HttpResponse {
  return {
    status,
    headers: [["content-type", "application/json"], ["x-content-type-options", "nosniff"], ...headers],
    body: JSON.stringify(value),
  };
}
