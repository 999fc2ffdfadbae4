// Writes WebSocket messages of the server's side (no mask, no fragments) straight to the socket: small ones copied into the batch, large
// bodies by reference.
import type { Duplex } from "node:stream";
import { Batch } from "./batch.ts";
import { BINARY, headerSize, MAX_HEADER, TEXT, writeHeader } from "./header.ts";

/** Bodies above this size are not copied. */
const SMALL = 2_048;
const NOTHING = new Uint8Array(0);

export class FrameWriter {
  readonly #batch: Batch;

  constructor(socket: Duplex, open: () => boolean) {
    this.#batch = new Batch(socket, open);
  }

  /** Bytes that the socket has not been given yet. */
  get waiting(): number {
    return this.#batch.waiting;
  }

  /** Sends one text message; its size in bytes, 0 on a socket that is not open. */
  text(before: string, body: Uint8Array = NOTHING, after = ""): number {
    if (!this.#batch.open) return 0;
    if (body.length <= SMALL && before.length + after.length <= SMALL) return this.#small(TEXT, before, body, after);
    return this.#large(TEXT, Buffer.from(before), body, Buffer.from(after));
  }

  bytes(data: Uint8Array, binary: boolean): void {
    if (!this.#batch.open) return;
    const first = binary ? BINARY : TEXT;
    if (data.length > SMALL) this.#large(first, NOTHING, data, NOTHING);
    else this.#small(first, "", data, "");
  }

  /** Gives the socket what waits. */
  flush(): void {
    this.#batch.flush();
  }

  /** Texts are mostly ASCII: the header is written for that, and the frame once more when it is not. */
  #small(first: number, before: string, body: Uint8Array, after: string): number {
    const slab = this.#batch.reserve(MAX_HEADER + (before.length + after.length) * 3 + body.length);
    const { at } = this.#batch;
    const guess = before.length + body.length + after.length;
    const size = put(slab, at, first, before, body, after, guess);
    if (size !== guess) put(slab, at, first, before, body, after, size);
    this.#batch.add(at + headerSize(size) + size);
    return size;
  }

  #large(first: number, before: Uint8Array, body: Uint8Array, after: Uint8Array): number {
    const size = before.length + body.length + after.length;
    const head = Buffer.allocUnsafe(MAX_HEADER + before.length);
    const start = writeHeader(head, 0, first, size);
    head.set(before, start);
    this.#batch.direct(size, (socket) => {
      socket.write(head.subarray(0, start + before.length));
      if (body.length > 0) socket.write(body);
      if (after.length > 0) socket.write(after);
    });
    return size;
  }
}

/** Writes a frame whose header says `length`; the length that it has. */
function put(slab: Buffer, at: number, first: number, before: string, body: Uint8Array, after: string, length: number): number {
  const start = writeHeader(slab, at, first, length);
  let end = start + slab.write(before, start);
  if (body.length > 0) {
    slab.set(body, end);
    end += body.length;
  }
  if (after !== "") end += slab.write(after, end);
  return end - start;
}
