// What waits to be pushed to one browser: in order, bounded. When it grows too large the events are dropped and one gap per session
// takes their place, so that a slow page reads its sessions again instead of costing memory. Pure.
import type { SessionPush } from "./contract.ts";

export type Push =
  | { readonly kind: "event"; readonly push: SessionPush }
  | { readonly kind: "sessions"; readonly added: readonly string[] };

interface Waiting {
  readonly item: Push;
  readonly bytes: number;
}
export interface OutboxLimits {
  readonly items: number;
  readonly bytes: number;
}

export class Outbox {
  readonly #limits: OutboxLimits;
  #waiting: Waiting[] = [];
  #bytes = 0;

  constructor(limits: OutboxLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#waiting.length;
  }

  event(push: SessionPush, bytes: number): void {
    this.#waiting.push({ item: { kind: "event", push }, bytes });
    this.#bytes += bytes;
    if (this.#waiting.length > this.#limits.items || this.#bytes > this.#limits.bytes) this.#collapse();
  }

  /** New sessions are told together when several wait. */
  sessions(added: readonly string[]): void {
    const at = this.#waiting.findIndex(({ item }) => item.kind === "sessions");
    const before = this.#waiting[at]?.item;
    const all = before?.kind === "sessions" ? [...before.added, ...added] : added;
    const waiting: Waiting = { item: { kind: "sessions", added: all }, bytes: 0 };
    if (at < 0) this.#waiting.push(waiting);
    else this.#waiting[at] = waiting;
  }

  /** Drops what waits for a session; the page is told that it missed something. */
  gap(session_id: string): void {
    this.#drop(({ push }) => push.session_id === session_id);
    this.#waiting.push(gapOf(session_id));
  }

  /** Drops the events of a session that the page already has: those of `epoch` up to `seq`, and gaps. */
  forget(session_id: string, epoch: string, seq: number): void {
    this.#drop(({ push }) => push.session_id === session_id && (push.gap === true || (push.epoch === epoch && (push.seq ?? 0) <= seq)));
  }

  take(): Push | undefined {
    const first = this.#waiting.shift();
    if (first !== undefined) this.#bytes -= first.bytes;
    return first?.item;
  }

  #collapse(): void {
    const sessions = new Set(this.#waiting.flatMap(({ item }) => (item.kind === "event" ? [item.push.session_id] : [])));
    this.#drop(() => true);
    this.#waiting.push(...[...sessions].map(gapOf));
  }

  #drop(test: (item: Extract<Push, { kind: "event" }>) => boolean): void {
    this.#waiting = this.#waiting.filter(({ item }) => item.kind !== "event" || !test(item));
    this.#bytes = this.#waiting.reduce((sum, { bytes }) => sum + bytes, 0);
  }
}

function gapOf(session_id: string): Waiting {
  return { item: { kind: "event", push: { session_id, gap: true } }, bytes: 0 };
}
