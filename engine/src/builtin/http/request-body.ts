// The engine's end of a `request_body` channel: pours a request's bytes in, as fast as the function takes them.
import type { Wire, WireHandlers } from "@iii/sdk";
import type { EngineChannel } from "../../ports/host.ts";

const FRAME_BYTES = 65_536;
const NORMAL = 1000;
const GOING_AWAY = 1001;
const LOST = 1011;

export type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export class RequestBody {
  readonly #channel: EngineChannel;
  readonly #handlers: WireHandlers;
  #full: PromiseWithResolvers<void> | undefined;
  #stopped = false;
  #poured = false;

  constructor(channel: EngineChannel) {
    this.#channel = channel;
    const wire: Wire = {
      send() {},
      pause: () => {
        this.#full ??= Promise.withResolvers();
      },
      resume: () => this.#open(),
      close: () => this.#stop(),
      terminate: () => this.#stop(),
      buffered: 0,
    };
    this.#handlers = channel.attach("write", wire);
  }

  /** Pours everything in. Never throws: a body that was cut short looks so to its reader. */
  async pour(pieces: Pieces): Promise<void> {
    try {
      for await (const piece of pieces) {
        if (!(await this.#take(piece))) return;
      }
      this.#close(NORMAL);
    } catch {
      this.#close(LOST);
    }
  }

  /** The request is over. A body that is in the channel as a whole stays there for whoever reads it now. */
  end(): void {
    if (!this.#poured || !this.#channel.taken("read")) this.#channel.end();
  }

  /** False once nobody wants the rest. */
  async #take(piece: Uint8Array): Promise<boolean> {
    for (let at = 0; at < piece.byteLength && !this.#stopped; at += FRAME_BYTES) {
      this.#handlers.message(piece.subarray(at, at + FRAME_BYTES), true);
      if (this.#full !== undefined) await this.#full.promise;
    }
    return !this.#stopped;
  }

  #close(code: number): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#poured = code === NORMAL;
    this.#handlers.close(code, "");
  }

  #open(): void {
    this.#full?.resolve();
    this.#full = undefined;
  }

  #stop(): void {
    this.#close(GOING_AWAY);
    this.#open();
  }
}
