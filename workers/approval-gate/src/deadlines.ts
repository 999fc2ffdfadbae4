// How long parked calls have left. Rows hold dates; a date is read once, when its row is met, and counted down on the monotonic clock
// from then on, so that a step of the wall clock neither expires a call nor keeps it alive.
import type { ParkedCall } from "@iii/contracts";
import type { Clock } from "@iii/sdk";
import { approvalKey } from "./contract.ts";

type Dated = Pick<ParkedCall, "session_id" | "function_call_id" | "requested_at" | "expires_at">;

const REMEMBERED = 10_000;

export class Deadlines {
  readonly #clock: Clock;
  readonly #met = new Map<string, { readonly expires_at: number; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** In ms, 0 when its time is over; null = it has no end. */
  remaining(row: Dated): number | null {
    if (row.expires_at === null) return null;
    return Math.max(0, this.#until(row, row.expires_at) - this.#clock.monotonic());
  }

  forget(key: string): void {
    this.#met.delete(key);
  }

  #until(row: Dated, expires_at: number): number {
    const key = approvalKey(row.session_id, row.function_call_id);
    const known = this.#met.get(key);
    if (known?.expires_at === expires_at) return known.until;
    // Never longer than it was given: the clock may have stepped back before this row was met.
    const left = Math.min(expires_at - this.#clock.now(), expires_at - row.requested_at);
    const until = this.#clock.monotonic() + left;
    this.#met.set(key, { expires_at, until });
    const oldest = this.#met.size > REMEMBERED ? this.#met.keys().next().value : undefined;
    if (oldest !== undefined) this.#met.delete(oldest);
    return until;
  }
}
