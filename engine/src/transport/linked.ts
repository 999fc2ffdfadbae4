// A wire inside one process: two ends that carry whole messages in order, asynchronously, with backpressure.
import type { Dialer, Wire, WireHandlers } from "@iii/sdk";
import type { Engine } from "../engine.ts";
import type { WireMeta } from "../shell/wires.ts";

interface Message {
  readonly data: Uint8Array;
  readonly binary: boolean;
}

const encoder = new TextEncoder();

/** One direction's receiving end. */
class End {
  handlers: WireHandlers | undefined;
  peer: End | undefined;
  readonly #inbox: (Message | { close: number; reason: string })[] = [];
  #bytes = 0;
  #paused = false;
  #scheduled = false;
  #closed = false;

  get waiting(): number {
    return this.#bytes;
  }

  get closed(): boolean {
    return this.#closed;
  }

  put(message: Message): void {
    if (this.#closed) return;
    this.#inbox.push(message);
    this.#bytes += message.data.length;
    this.#schedule();
  }

  /** The peer closed: what it sent before is delivered first. */
  putClose(code: number, reason: string): void {
    if (this.#closed) return;
    this.#inbox.push({ close: code, reason });
    this.#schedule();
  }

  /** Ends at once; what waits is lost. */
  cut(code: number, reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#inbox.length = 0;
    this.#bytes = 0;
    queueMicrotask(() => this.handlers?.close(code, reason));
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#paused || this.#closed || this.#inbox.length === 0) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    while (!this.#paused && !this.#closed) {
      const next = this.#inbox.shift();
      if (next === undefined) return;
      if ("close" in next) {
        this.cut(next.close, next.reason);
        return;
      }
      this.#bytes -= next.data.length;
      this.handlers?.message(next.data, next.binary);
      if (this.#inbox.length === 0) this.peer?.handlers?.drain?.();
    }
  }
}

function wireOf(own: End, far: End): Wire {
  return {
    send(data, binary = false) {
      if (own.closed) return;
      far.put({ data: typeof data === "string" ? encoder.encode(data) : data, binary });
    },
    pause: () => own.pause(),
    resume: () => own.resume(),
    close(code = 1005, reason = "") {
      if (own.closed) return;
      far.putClose(code, reason);
      own.cut(code, reason);
    },
    terminate() {
      far.cut(1006, "");
      own.cut(1006, "");
    },
    // In one process the peer always answers.
    ping: () => queueMicrotask(() => own.handlers?.alive?.()),
    get buffered() {
      return far.waiting;
    },
  };
}

/** Dials an engine in this process. `engine` is asked for at each dial: undefined = nobody listens. */
export function linkedDialer(engine: () => Engine | undefined, meta: WireMeta = {}): Dialer {
  return {
    address: "linked",
    dial(path, handlers) {
      const near = new End();
      const far = new End();
      near.handlers = handlers;
      near.peer = far;
      far.peer = near;
      queueMicrotask(() => {
        if (near.closed) return;
        const accepted = engine()?.accept(path, wireOf(far, near), meta);
        if (accepted === undefined) {
          near.cut(1006, "refused");
          return;
        }
        far.handlers = accepted;
        handlers.open?.();
      });
      return wireOf(near, far);
    },
  };
}
