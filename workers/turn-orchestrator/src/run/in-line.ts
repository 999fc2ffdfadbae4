// One thing at a time per session, in the order of asking.

export class InLine {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** Runs `work` when everything that was asked for before it, for the same session, has come to its end. */
  async behind<T>(session_id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(session_id);
    const mine = before === undefined ? work() : before.then(work, work);
    this.#tails.set(session_id, mine);
    try {
      return await mine;
    } finally {
      if (this.#tails.get(session_id) === mine) this.#tails.delete(session_id);
    }
  }
}
