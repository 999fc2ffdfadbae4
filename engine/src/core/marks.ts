// The agent's mark of whoever runs an agent's calls: held while one runs and for a time after the last has ended.
import type { Invocation } from "./pending.ts";

/** How long (ms) the mark stays after the last agent's call has ended: what it left running still acts for the agent. */
export const MARK_GRACE_MS = 60_000;

export interface Held {
  /** The session of every call that is held; undefined when there are several, or it is not known. */
  readonly session: string | undefined;
}

/** The mark of one connection, or of all connections of one entry. */
export class Mark {
  readonly #running = new Map<string, number>();
  readonly #until = new Map<string, number>();

  start({ session = "" }: Invocation): void {
    this.#running.set(session, (this.#running.get(session) ?? 0) + 1);
  }

  stop({ session = "" }: Invocation, now: number): void {
    const left = (this.#running.get(session) ?? 1) - 1;
    if (left > 0) this.#running.set(session, left);
    else this.#running.delete(session);
    this.#until.set(session, now + MARK_GRACE_MS);
  }

  /** What is held at this time (monotonic ms); undefined: nothing. */
  at(now: number): Held | undefined {
    if (this.#running.size + this.#until.size === 0) return undefined;
    for (const [session, until] of this.#until) if (until <= now) this.#until.delete(session);
    const sessions = new Set([...this.#running.keys(), ...this.#until.keys()]);
    if (sessions.size === 0) return undefined;
    const [only] = sessions;
    return { session: sessions.size === 1 && only !== "" ? only : undefined };
  }
}

/** The marks of entries, and of connections that broke off: who reattaches takes the mark along. */
export class Marks {
  readonly #entries = new Map<string, Mark>();
  readonly #left = new Map<string, { readonly token: string; readonly mark: Mark }>();

  ofEntry(name: string): Mark {
    const known = this.#entries.get(name) ?? new Mark();
    this.#entries.set(name, known);
    return known;
  }

  /** A connection is gone. Kept for as long as its mark holds. */
  left(id: string, token: string, mark: Mark, now: number): void {
    for (const [old, { mark: held }] of this.#left) if (held.at(now) === undefined) this.#left.delete(old);
    if (mark.at(now) !== undefined) this.#left.set(id, { token, mark });
  }

  /** The mark of a connection that broke off, for who shows its token. */
  taken(id: string, token: unknown): Mark | undefined {
    const found = this.#left.get(id);
    return found !== undefined && found.token === token ? found.mark : undefined;
  }
}
