// Wires over `ws`, for Node. The only file of the SDK that imports it.
import { WebSocket } from "ws";
import { type Dialer, shownAddress, type Wire, type WireHandlers } from "../ports.ts";
import { MaskedWriter } from "../socket/masked-writer.ts";

export interface WsDialerOptions {
  /** Sent with the upgrade of every wire. */
  headers?: Record<string, string>;
  /** How often a ping is sent; a peer that shows no life for three of them is dead. */
  ping_ms?: number;
}

const HANDSHAKE_MS = 10_000;
const CLOSE_MS = 2_000;
/** No limit on receive: the engine already bounds messages, and what it adds must not close us. */
const MAX_PAYLOAD = 0;

/** Dials the engine at `url` (`ws://host:port`, with or without a path of its own). */
export function wsDialer(url: string, options: WsDialerOptions = {}): Dialer {
  const base = url.replace(/\/+$/, "");
  return {
    address: shownAddress(base),
    dial(path, handlers) {
      try {
        return new WsWire(path === "/" ? `${base}/` : `${base}${path}`, handlers, options);
      } catch (cause) {
        // A URL that cannot be dialled ends like any other failed connection.
        const reason = cause instanceof Error ? cause.message : String(cause);
        queueMicrotask(() => handlers.close(1006, reason));
        return deadWire;
      }
    },
  };
}

const deadWire: Wire = { send() {}, pause() {}, resume() {}, close() {}, terminate() {}, buffered: 0 };

class WsWire implements Wire {
  readonly #socket: WebSocket;
  readonly #pingMs: number;
  #writer: MaskedWriter | undefined;
  #reason = "";
  #silent = 0;
  #pinger: NodeJS.Timeout | undefined;

  constructor(url: string, handlers: WireHandlers, options: WsDialerOptions) {
    this.#pingMs = options.ping_ms ?? 10_000;
    this.#socket = new WebSocket(url, {
      perMessageDeflate: false,
      handshakeTimeout: HANDSHAKE_MS,
      maxPayload: MAX_PAYLOAD,
      ...(options.headers === undefined ? {} : { headers: options.headers }),
    });
    this.#socket.on("upgrade", ({ socket }) => {
      socket.setNoDelay(true);
      socket.on("drain", () => handlers.drain?.());
      const plain = (data: Uint8Array | string, binary: boolean): void => this.#socket.send(data, { binary });
      this.#writer = new MaskedWriter(socket, () => this.#socket.readyState === WebSocket.OPEN, plain);
    });
    this.#socket.on("open", () => {
      this.#startPinging();
      handlers.open?.();
    });
    this.#socket.on("message", (data, binary) => {
      this.#silent = 0;
      handlers.message(data as Buffer, binary);
    });
    for (const sign of ["ping", "pong"] as const) {
      this.#socket.on(sign, () => {
        this.#silent = 0;
        handlers.alive?.();
      });
    }
    this.#socket.on("error", (error) => {
      this.#reason = error.message;
    });
    this.#socket.once("close", (code, reason) => {
      clearInterval(this.#pinger);
      handlers.close(code, reason.toString() || this.#reason);
    });
  }

  get buffered(): number {
    return this.#socket.bufferedAmount + (this.#writer?.waiting ?? 0);
  }

  send(data: Uint8Array | string, binary = false): void {
    this.#writer?.send(data, binary);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(code = 1000, reason = ""): void {
    this.#writer?.flush();
    this.#socket.close(code, reason);
    setTimeout(() => this.#socket.terminate(), CLOSE_MS).unref();
  }

  terminate(): void {
    this.#socket.terminate();
  }

  ping(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  #startPinging(): void {
    this.#pinger = setInterval(() => {
      this.#silent += 1;
      if (this.#silent > 3) {
        this.#reason = "the engine shows no sign of life";
        this.#socket.terminate();
      } else this.#socket.ping();
    }, this.#pingMs);
    this.#pinger.unref();
  }
}
