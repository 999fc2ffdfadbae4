// Writes WebSocket messages of the client's side: small texts masked by us into the batch of this event-loop turn, everything else by `ws`.
import { randomFillSync } from "node:crypto";
import type { Duplex } from "node:stream";
import { Batch } from "./batch.ts";
import { headerSize, MAX_HEADER, TEXT, writeHeader } from "./header.ts";

/** Longer texts are masked by `ws`, which does it natively. */
const SMALL = 2_048;
const MASK = 4;

/** Random bytes are fetched in stock; every frame takes four of its own. */
const stock = Buffer.allocUnsafeSlow(8_192);
let used = stock.length;

function nextMask(): number {
  if (used === stock.length) {
    randomFillSync(stock);
    used = 0;
  }
  used += MASK;
  return used - MASK;
}

function mask(slab: Buffer, from: number, to: number): void {
  const key = nextMask();
  for (let i = 0; i < MASK; i += 1) slab[from - MASK + i] = stock[key + i] as number;
  const [a = 0, b = 0, c = 0, d = 0] = [stock[key], stock[key + 1], stock[key + 2], stock[key + 3]];
  let i = from;
  for (; i + 3 < to; i += 4) {
    (slab[i] as number) ^= a;
    (slab[i + 1] as number) ^= b;
    (slab[i + 2] as number) ^= c;
    (slab[i + 3] as number) ^= d;
  }
  if (i < to) (slab[i] as number) ^= a;
  if (i + 1 < to) (slab[i + 1] as number) ^= b;
  if (i + 2 < to) (slab[i + 2] as number) ^= c;
}

export class MaskedWriter {
  readonly #batch: Batch;
  /** `ws`'s own way, for what is not a small text. */
  readonly #plain: (data: Uint8Array | string, binary: boolean) => void;

  constructor(socket: Duplex, open: () => boolean, plain: (data: Uint8Array | string, binary: boolean) => void) {
    this.#batch = new Batch(socket, open);
    this.#plain = plain;
  }

  /** Bytes that the socket has not been given yet. */
  get waiting(): number {
    return this.#batch.waiting;
  }

  send(data: Uint8Array | string, binary: boolean): void {
    if (!this.#batch.open) return;
    if (typeof data === "string" && !binary && data.length <= SMALL) this.#small(data);
    else this.#batch.direct(data.length, () => this.#plain(data, binary));
  }

  /** Gives the socket what waits. */
  flush(): void {
    this.#batch.flush();
  }

  /** Texts are mostly ASCII: the place of the text is chosen for that, and once more when it is not. */
  #small(text: string): void {
    const slab = this.#batch.reserve(MAX_HEADER + MASK + text.length * 3);
    const { at } = this.#batch;
    let start = at + headerSize(text.length) + MASK;
    const size = slab.write(text, start);
    if (headerSize(size) !== headerSize(text.length)) {
      start = at + headerSize(size) + MASK;
      slab.write(text, start);
    }
    writeHeader(slab, at, TEXT, size, true);
    mask(slab, start, start + size);
    this.#batch.add(start + size);
  }
}
