// Writes WebSocket messages of the server's side (no mask, no fragments) straight to the socket: those of one event-loop turn together,
// small ones copied into one buffer, large bodies by reference. Between its calls the socket has seen whole frames only, so that
// whatever `ws` writes itself (pong, close) stands between two of them.
import type { Duplex } from "node:stream";

const TEXT = 0x81;
const BINARY = 0x82;
/** So many frames leave without waiting for the end of the turn: their reader works while we do. */
const FRAMES_PER_WRITE = 16;
/** Bodies above this size are not copied. */
const SMALL = 2_048;
const SLAB = 32_768;
/** What a message of one slab can need at most beside its texts and body. */
const HEADER = 4;
const NOTHING = new Uint8Array(0);

/** The header of a frame of `length` bytes, written at `at`; the position after it. */
function writeHeader(target: Buffer, at: number, first: number, length: number): number {
  target[at] = first;
  if (length < 126) {
    target[at + 1] = length;
    return at + 2;
  }
  if (length < 65_536) {
    target[at + 1] = 126;
    target[at + 2] = length >>> 8;
    target[at + 3] = length & 0xff;
    return at + 4;
  }
  target[at + 1] = 127;
  target.writeBigUInt64BE(BigInt(length), at + 2);
  return at + 10;
}

export class FrameWriter {
  readonly #socket: Duplex;
  readonly #open: () => boolean;
  /** Frames that wait stand between `#from` and `#to`; what is before them has been given to the socket and is not touched again. */
  #slab = Buffer.allocUnsafeSlow(0);
  #from = 0;
  #to = 0;
  #frames = 0;
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

  /** Bytes that the socket has not been given yet. */
  get waiting(): number {
    return this.#to - this.#from;
  }

  /** Sends one text message; its size in bytes, 0 on a socket that is not open. */
  text(before: string, body: Uint8Array = NOTHING, after = ""): number {
    if (!this.#open()) return 0;
    const size =
      body.length > SMALL || before.length + after.length > SMALL
        ? this.#large(TEXT, Buffer.from(before), body, Buffer.from(after))
        : this.#small(TEXT, before, body, after);
    this.#sent();
    return size;
  }

  bytes(data: Uint8Array, binary: boolean): void {
    if (!this.#open()) return;
    const first = binary ? BINARY : TEXT;
    if (data.length > SMALL) this.#large(first, NOTHING, data, NOTHING);
    else this.#small(first, "", data, "");
    this.#sent();
  }

  /** Gives the socket what waits. */
  flush(): void {
    this.#frames = 0;
    this.#release();
    if (!this.#corked) return;
    this.#corked = false;
    this.#socket.uncork();
  }

  #sent(): void {
    this.#frames += 1;
    if (this.#frames >= FRAMES_PER_WRITE) this.flush();
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

  #reserve(bytes: number): void {
    if (this.#slab.length - this.#to >= bytes) return;
    this.#release();
    this.#slab = Buffer.allocUnsafeSlow(SLAB);
    this.#from = 0;
    this.#to = 0;
  }

  /** Texts are mostly ASCII: the header is written for that, and the frame once more when it is not. */
  #small(first: number, before: string, body: Uint8Array, after: string): number {
    this.#reserve(HEADER + (before.length + after.length) * 3 + body.length);
    const guess = before.length + body.length + after.length;
    const size = this.#put(first, before, body, after, guess);
    if (size !== guess) this.#put(first, before, body, after, size);
    this.#to += (size < 126 ? 2 : 4) + size;
    return size;
  }

  #put(first: number, before: string, body: Uint8Array, after: string, length: number): number {
    const slab = this.#slab;
    const start = writeHeader(slab, this.#to, first, length);
    let at = start + slab.write(before, start);
    if (body.length > 0) {
      slab.set(body, at);
      at += body.length;
    }
    if (after !== "") at += slab.write(after, at);
    return at - start;
  }

  #large(first: number, before: Uint8Array, body: Uint8Array, after: Uint8Array): number {
    const size = before.length + body.length + after.length;
    const head = Buffer.allocUnsafe(10 + before.length);
    const start = writeHeader(head, 0, first, size);
    head.set(before, start);
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
    }
    this.#release();
    this.#socket.write(head.subarray(0, start + before.length));
    if (body.length > 0) this.#socket.write(body);
    if (after.length > 0) this.#socket.write(after);
    return size;
  }
}
