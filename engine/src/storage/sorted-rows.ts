// Rows in order of the bytes of their keys, in memory: one found by its key, a range by two halvings.

/** Sorts a UTF-16 unit as the first byte of its character does in UTF-8: surrogates stand for characters above all others. */
const rank = (unit: number): number => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);

function byBytes(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    const [a, b] = [left.charCodeAt(at), right.charCodeAt(at)];
    if (a !== b) return rank(a) - rank(b);
  }
  return left.length - right.length;
}

export class SortedRows {
  readonly #values = new Map<string, string>();
  readonly #keys: string[] = [];

  get size(): number {
    return this.#keys.length;
  }

  get(key: string): string | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: string): void {
    if (!this.#values.has(key)) this.#keys.splice(this.#firstNotBefore(key), 0, key);
    this.#values.set(key, value);
  }

  delete(key: string): void {
    if (this.#values.delete(key)) this.#keys.splice(this.#firstNotBefore(key), 1);
  }

  /** From the first key that is behind `after` and not before `prefix`. */
  *from(after: string | undefined, prefix: string): Generator<[string, string]> {
    let at = this.#firstNotBefore(after === undefined || byBytes(after, prefix) < 0 ? prefix : after);
    if (this.#keys[at] === after) at += 1;
    for (; at < this.#keys.length; at += 1) {
      const key = this.#keys[at] ?? "";
      yield [key, this.#values.get(key) ?? ""];
    }
  }

  #firstNotBefore(key: string): number {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (byBytes(this.#keys[middle] ?? "", key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
