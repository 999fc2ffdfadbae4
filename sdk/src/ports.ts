// The ports through which everything reaches the outside world: time, chance and the wire.
// Core code takes them as arguments; only `system.ts` and the transports touch the real ones.

/** A cancellable timer. Cancelling a fired timer does nothing. */
export interface Timer {
  cancel(): void;
}

/**
 * Time, in ms. `now` is wall-clock time since the epoch, for dates that are stored or shown. `monotonic` has no epoch and never jumps:
 * every wait and deadline is measured on it, and timers run on it.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
  setTimer(callback: () => void, delayMs: number): Timer;
}

/** Chance. `uuid` gives a UUIDv4; `hex(n)` gives n random bytes as 2n lower-case hex digits; `float` is in [0, 1). */
export interface Random {
  uuid(): string;
  hex(bytes: number): string;
  float(): number;
}

/**
 * One open duplex connection that carries whole messages in order.
 * `send` never throws: on a closed wire it does nothing. `buffered` is in bytes not yet handed to the peer.
 */
export interface Wire {
  send(data: Uint8Array | string, binary?: boolean): void;
  /** Sends one text message of which `body` is UTF-8 already, and need not be copied when it is large; its size in bytes. Absent: join and `send`. */
  sendParts?(before: string, body: Uint8Array, after: string): number;
  pause(): void;
  resume(): void;
  close(code?: number, reason?: string): void;
  /** Drops the connection at once, without a closing handshake. */
  terminate(): void;
  /** Asks the peer for a sign of life; its answer comes as `alive`. Absent where the transport has no pings. */
  ping?(): void;
  readonly buffered: number;
}

/** What happens on a wire. `close` is called exactly once and nothing is called after it. */
export interface WireHandlers {
  open?(): void;
  message(data: Uint8Array, binary: boolean): void;
  close(code: number, reason: string): void;
  /** A transport-level ping or pong arrived: the peer is alive. */
  alive?(): void;
  /** What was sent and had to wait is on its way: `buffered` has fallen again. */
  drain?(): void;
}

/** Opens wires to the engine. `path` is `/`, `/otel` or `/ws/channels/<id>?key=…&dir=…`, relative to the engine's base address. */
export interface Dialer {
  dial(path: string, handlers: WireHandlers): Wire;
  /** For messages to people: where this dials to. */
  readonly address: string;
}

/** An engine's address as people and logs may see it: without the token in it. */
export function shownAddress(url: string): string {
  return url.replace(/\/as\/[^/?#]*/, "");
}
