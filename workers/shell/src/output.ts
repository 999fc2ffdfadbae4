// Keeps the first and the last part of a program's output, so that neither its start nor its final error is lost to the cap.
import { uncut } from "./files.ts";

export class CappedOutput {
  readonly #half: number;
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #dropped = 0;

  constructor(maxBytes: number) {
    this.#half = Math.max(1, Math.floor(maxBytes / 2));
  }

  get truncated(): boolean {
    return this.#dropped > 0;
  }

  push(chunk: Buffer): void {
    const room = this.#half - this.#headBytes;
    const first = chunk.subarray(0, Math.max(0, room));
    if (first.length > 0) {
      this.#head.push(first);
      this.#headBytes += first.length;
    }
    const rest = chunk.subarray(first.length);
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    // Merged only now and then: one copy per `half` bytes, not per chunk.
    if (this.#tailBytes > 2 * this.#half) this.#trim();
  }

  text(): string {
    if (this.#tailBytes > this.#half) this.#trim();
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    if (!this.truncated) return Buffer.concat([head, tail]).toString("utf8");
    const first = uncut(head, { start: false, end: true });
    const last = uncut(tail, { start: true, end: false });
    const dropped = this.#dropped + head.length - first.length + tail.length - last.length;
    return `${first.toString("utf8")}\n[… ${dropped} bytes left out …]\n${last.toString("utf8")}`;
  }

  #trim(): void {
    const all = Buffer.concat(this.#tail);
    const kept = all.subarray(Math.max(0, all.length - this.#half));
    this.#dropped += all.length - kept.length;
    this.#tail = [kept];
    this.#tailBytes = kept.length;
  }
}
