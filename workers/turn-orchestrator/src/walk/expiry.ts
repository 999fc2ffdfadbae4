// How long parked calls can still be decided. Stored are dates; in a process that saw a call being parked, elapsed time counts, so that a
// wall clock which steps neither expires a call early nor lets it live on.
import type { Clock } from "@iii/sdk";
import { type Left, leftAt, type TurnCall, type TurnRecord } from "../machine/record.ts";

type Parked = TurnCall & { phase: "parked" };

export class Expiry {
  readonly #clock: Clock;
  /** By session and call: the end on the monotonic clock, and the date it was taken from. */
  readonly #ends = new Map<string, Map<string, { readonly at: number; readonly expires_at: number }>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds that are left; null = for ever. The first look at a call after a start goes by its dates. */
  left(session_id: string, call: Parked): number | null {
    const { id, expires_at } = call;
    if (expires_at === null) return null;
    const ends = this.#ends.get(session_id) ?? new Map();
    this.#ends.set(session_id, ends);
    const now = this.#clock.monotonic();
    const known = ends.get(id);
    if (known?.expires_at === expires_at) return Math.max(0, known.at - now);
    const left = leftAt(this.#clock.now())(call) ?? 0;
    ends.set(id, { at: now + left, expires_at });
    return left;
  }

  of(session_id: string): Left {
    return (call) => this.left(session_id, call);
  }

  /** Remembers the calls of this record that wait, and forgets those that no longer do. */
  keep({ session_id, calls }: TurnRecord): void {
    const waiting = calls.filter((call) => call.phase === "parked");
    if (waiting.length === 0) {
      this.#ends.delete(session_id);
      return;
    }
    for (const call of waiting) this.left(session_id, call);
    const ids = new Set(waiting.map((call) => call.id));
    const ends = this.#ends.get(session_id);
    for (const id of ends?.keys() ?? []) if (!ids.has(id)) ends?.delete(id);
  }
}
