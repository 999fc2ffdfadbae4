// Frames on their way to a socket: those of one event-loop turn in one buffer and one write, large ones by reference between them.
// Between its calls the socket has seen whole frames only, so that whatever `ws` writes itself (pong, close) stands between two of them.
import type { Duplex } from "node:stream";

/** So many frames, or bytes, leave without waiting for the end of the turn: their reader works while we do. */
const FRAMES_PER_WRITE = 64;
const BYTES_PER_WRITE = 65_536;
const SLAB = 65_536;

export class Batch {
  readonly #socket: Duplex;
  readonly #open: () => boolean;
  /** Frames that wait stand between `#from` and `#to`; what is before them has been given to the socket and is not touched again. */
  #slab = Buffer.allocUnsafeSlow(0);
  #from = 0;
  #to = 0;
  #frames = 0;
  #bytes = 0;
  #scheduled = false;
  #corked = false;
  readonly #turnEnd = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  constructor(socket: Duplex, open: () => boolean) {
    this.#socket = socket;
    this.#open = open;
  }

  get open(): boolean {
    return this.#open();
  }

  /** Bytes that the socket has not been given yet. */
  get waiting(): number {
    return this.#to - this.#from;
  }

  /** The buffer to write a frame of at most `bytes` into, from `at` on. */
  reserve(bytes: number): Buffer {
    if (this.#slab.length - this.#to < bytes) {
      this.#release();
      this.#slab = Buffer.allocUnsafeSlow(SLAB);
      this.#from = 0;
      this.#to = 0;
    }
    return this.#slab;
  }

  get at(): number {
    return this.#to;
  }

  /** One frame stands in the buffer, up to `end`. */
  add(end: number): void {
    const bytes = end - this.#to;
    this.#to = end;
    this.#sent(bytes);
  }

  /** Runs `write`, which gives the socket one frame of `bytes` by itself, behind all that waits. */
  direct(bytes: number, write: (socket: Duplex) => void): void {
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
    }
    this.#release();
    write(this.#socket);
    this.#sent(bytes);
  }

  /** Gives the socket what waits. */
  flush(): void {
    this.#frames = 0;
    this.#bytes = 0;
    this.#release();
    if (!this.#corked) return;
    this.#corked = false;
    this.#socket.uncork();
  }

  #sent(bytes: number): void {
    this.#frames += 1;
    this.#bytes += bytes;
    if (this.#frames >= FRAMES_PER_WRITE || this.#bytes >= BYTES_PER_WRITE) this.flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(this.#turnEnd);
    }
  }

  #release(): void {
    if (this.#from === this.#to) return;
    const frames = this.#slab.subarray(this.#from, this.#to);
    this.#from = this.#to;
    if (this.#open()) this.#socket.write(frames);
  }
}
