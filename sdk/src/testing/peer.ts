// A scripted other end for faults that a real engine does not produce on demand. For everything else, test on the real engine.
import type { Dialer, Wire, WireHandlers } from "../ports.ts";

/** One dialled wire, seen from the engine's side. */
export class PeerConnection {
  readonly path: string;
  /** Text frames received, parsed. */
  readonly frames: Record<string, unknown>[] = [];
  /** Binary frames received. */
  readonly binary: Uint8Array[] = [];
  paused = false;
  closed: { code: number; reason: string } | undefined;
  /** What the dialling side sees as not yet handed over. */
  buffered = 0;
  readonly #handlers: WireHandlers;
  readonly #text = { encode: new TextEncoder(), decode: new TextDecoder() };

  constructor(path: string, handlers: WireHandlers) {
    this.path = path;
    this.#handlers = handlers;
  }

  open(): void {
    this.#handlers.open?.();
  }

  send(frame: object | string | Uint8Array): void {
    const binary = frame instanceof Uint8Array;
    const data = binary ? frame : this.#text.encode.encode(typeof frame === "string" ? frame : JSON.stringify(frame));
    this.#handlers.message(data, binary);
  }

  /** Ends the wire, as the engine or the network would. */
  drop(code = 1006, reason = ""): void {
    if (this.closed !== undefined) return;
    this.closed = { code, reason };
    this.#handlers.close(code, reason);
  }

  /** Frames of one type. */
  of(type: string): Record<string, unknown>[] {
    return this.frames.filter((frame) => frame["type"] === type);
  }

  hold(paused: boolean): void {
    this.paused = paused;
  }

  receive(data: Uint8Array | string, binary: boolean): void {
    if (this.closed !== undefined) return;
    const bytes = typeof data === "string" ? this.#text.encode.encode(data) : data;
    if (binary) this.binary.push(bytes);
    else this.frames.push(JSON.parse(this.#text.decode.decode(bytes)) as Record<string, unknown>);
  }
}

/** A dialer that leads to a script. `auto`: wires open by themselves, in a microtask. */
export class ScriptedPeer implements Dialer {
  readonly address = "scripted:";
  readonly connections: PeerConnection[] = [];
  readonly #auto: boolean;

  constructor(options: { auto?: boolean } = {}) {
    this.#auto = options.auto ?? true;
  }

  /** The newest connection. */
  get last(): PeerConnection {
    const connection = this.connections.at(-1);
    if (connection === undefined) throw new Error("nothing was dialled");
    return connection;
  }

  dial(path: string, handlers: WireHandlers): Wire {
    const connection = new PeerConnection(path, handlers);
    this.connections.push(connection);
    if (this.#auto) queueMicrotask(() => connection.open());
    return {
      send: (data, binary) => connection.receive(data, binary === true),
      pause: () => connection.hold(true),
      resume: () => connection.hold(false),
      close: (code = 1000, reason = "") => queueMicrotask(() => connection.drop(code, reason)),
      terminate: () => queueMicrotask(() => connection.drop()),
      get buffered() {
        return connection.buffered;
      },
    };
  }
}
