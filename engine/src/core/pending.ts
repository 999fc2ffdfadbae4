// The table of calls in flight, keyed by ids that the engine made, and their deadlines in order.
import type { Origin } from "@iii/sdk/protocol";

export interface Invocation {
  readonly id: string;
  readonly function_id: string;
  /** The calling connection; null when the engine calls. */
  readonly caller: string | null;
  /** The id that the caller chose and waits for; undefined when it wants no answer. */
  readonly client_id: string | undefined;
  /** The connection that runs it; null when the engine does. */
  readonly executor: string | null;
  readonly origin: Origin;
  /** The session that the agent's mark carries. */
  readonly session?: string | undefined;
  readonly depth: number;
  readonly parent: string | undefined;
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
  /** A queue's delivery: it counts against its queue, not against the connection that runs it. */
  readonly lease: boolean;
  /** Made within such a delivery, by the one that runs it: its number is bounded by theirs. */
  readonly leased: boolean;
  /** Monotonic ms; null = as long as the executor's connection answers. */
  deadline: number | null;
  cancelled: boolean;
}

interface Due {
  readonly at: number;
  readonly id: string;
}

/** A call that has ended for its caller and still runs. */
interface Overdue {
  readonly at: number;
  readonly invocation: Invocation;
}

export class Invocations {
  readonly #live = new Map<string, Invocation>();
  /** A binary heap by `at`; entries of calls that have ended are skipped when they surface. */
  #due: Due[] = [];
  /** Agents' calls that ended without their executor's answer, in order of time. */
  readonly #overdue: Overdue[] = [];

  get size(): number {
    return this.#live.size;
  }

  get(id: string): Invocation | undefined {
    return this.#live.get(id);
  }

  has(id: string): boolean {
    return this.#live.has(id);
  }

  add(invocation: Invocation): void {
    this.#live.set(invocation.id, invocation);
    this.#watch(invocation);
  }

  remove(id: string): Invocation | undefined {
    const invocation = this.#live.get(id);
    if (invocation !== undefined) this.#live.delete(id);
    return invocation;
  }

  /** Moves the deadline nearer; never further away. */
  shorten(invocation: Invocation, at: number): void {
    if (invocation.deadline !== null && invocation.deadline <= at) return;
    invocation.deadline = at;
    this.#watch(invocation);
  }

  /** When the next deadline may fall due; undefined when none is set. May be early, never late. */
  nextDeadline(): number | undefined {
    const [due, overdue] = [this.#due[0]?.at, this.#overdue[0]?.at];
    return due === undefined || overdue === undefined ? (due ?? overdue) : Math.min(due, overdue);
  }

  /** Remembers a call that has ended and still runs; `at` never falls from one call to the next. */
  keep(invocation: Invocation, at: number): void {
    this.#overdue.push({ at, invocation });
  }

  /** The calls that still ran when their time was up. */
  takeOverdue(now: number): readonly Invocation[] {
    const young = this.#overdue.findIndex(({ at }) => at > now);
    return this.#overdue.splice(0, young === -1 ? this.#overdue.length : young).map(({ invocation }) => invocation);
  }

  /** Every live call whose deadline has passed, oldest first. They stay in the table. */
  takeDue(now: number): Invocation[] {
    const due: Invocation[] = [];
    for (let top = this.#due[0]; top !== undefined && top.at <= now; top = this.#due[0]) {
      this.#pop();
      const invocation = this.#live.get(top.id);
      if (invocation?.deadline === top.at) due.push(invocation);
    }
    return due;
  }

  #watch(invocation: Invocation): void {
    if (invocation.deadline === null) return;
    if (this.#due.length > 1_024 && this.#due.length > 4 * this.#live.size) this.#rebuild();
    this.#push({ at: invocation.deadline, id: invocation.id });
  }

  #rebuild(): void {
    const rows: Due[] = [];
    for (const { id, deadline } of this.#live.values()) if (deadline !== null) rows.push({ at: deadline, id });
    this.#due = rows.sort((a, b) => a.at - b.at);
  }

  #push(row: Due): void {
    const heap = this.#due;
    let i = heap.push(row) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      const above = heap[up];
      if (above === undefined || above.at <= row.at) break;
      heap[i] = above;
      i = up;
    }
    heap[i] = row;
  }

  #pop(): void {
    const heap = this.#due;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let i = 0;
    for (;;) {
      const left = 2 * i + 1;
      const right = left + 1;
      const down = (heap[right]?.at ?? Number.POSITIVE_INFINITY) < (heap[left]?.at ?? Number.POSITIVE_INFINITY) ? right : left;
      const below = heap[down];
      if (below === undefined || below.at >= last.at) break;
      heap[i] = below;
      i = down;
    }
    heap[i] = last;
  }
}
