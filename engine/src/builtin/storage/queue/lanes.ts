// Which message may run next: one lane per group, one message of a lane at a time, lanes in parallel up to `concurrency`.
// A failed head blocks its own lane only. Knows nothing of storage, calls or time's source.
import type { Message } from "./message.ts";

type LaneState = "idle" | "ready" | "running" | "backoff" | "parked";

export interface Lane {
  readonly name: string;
  readonly messages: Map<string, Message>;
  state: LaneState;
}

/** Why a lane's head cannot run now. */
export type Obstacle = { type: "backoff"; until: number } | { type: "unserved"; function_id: string };

export interface LaneRules {
  obstacle(head: Message): Obstacle | undefined;
  /** Asks to call `wake(lane)` at this monotonic time. */
  wakeAt(until: number, lane: Lane): void;
  start(lane: Lane, head: Message): void;
}

export class Lanes {
  concurrency: number;
  readonly #rules: LaneRules;
  readonly #lanes = new Map<string, Lane>();
  readonly #ready = new Set<Lane>();
  readonly #parked = new Map<string, Set<Lane>>();
  #running = 0;
  #closed = false;

  constructor(concurrency: number, rules: LaneRules) {
    this.concurrency = concurrency;
    this.#rules = rules;
  }

  /** Adds a message at the end of its lane; messages without a group have a lane each. */
  add(message: Message): void {
    const name = message.group === undefined ? `m:${message.key}` : `g:${message.group}`;
    const lane: Lane = this.#lanes.get(name) ?? { name, messages: new Map(), state: "idle" };
    this.#lanes.set(name, lane);
    lane.messages.set(message.key, message);
    this.#offer(lane);
  }

  /** The run of a lane's head has ended; `settled` heads leave the lane, others stay at its head. */
  finished(lane: Lane, head: Message, settled: boolean): void {
    this.#running -= 1;
    lane.state = "idle";
    if (settled) lane.messages.delete(head.key);
    this.#offer(lane);
    this.#pump();
  }

  /** The backoff of a lane's head is over. */
  wake(lane: Lane): void {
    if (lane.state !== "backoff") return;
    lane.state = "idle";
    this.#offer(lane);
  }

  /** A function is served now: lanes that waited for it go on. */
  served(function_id: string): void {
    const lanes = this.#parked.get(function_id);
    this.#parked.delete(function_id);
    for (const lane of lanes ?? []) {
      lane.state = "idle";
      this.#offer(lane);
    }
  }

  /** The delivery rules changed: whatever waits for a function is looked at again. */
  reconsider(): void {
    for (const function_id of [...this.#parked.keys()]) this.served(function_id);
    this.#pump();
  }

  /** Starts nothing more. */
  close(): void {
    this.#closed = true;
  }

  #offer(lane: Lane): void {
    if (lane.state !== "idle") return;
    const head = lane.messages.values().next().value;
    if (head === undefined) {
      this.#lanes.delete(lane.name);
      return;
    }
    const obstacle = this.#rules.obstacle(head);
    if (obstacle === undefined) {
      lane.state = "ready";
      this.#ready.add(lane);
      this.#pump();
    } else if (obstacle.type === "backoff") {
      lane.state = "backoff";
      this.#rules.wakeAt(obstacle.until, lane);
    } else {
      lane.state = "parked";
      const waiting = this.#parked.get(obstacle.function_id) ?? new Set();
      this.#parked.set(obstacle.function_id, waiting.add(lane));
    }
  }

  #pump(): void {
    for (const lane of this.#ready) {
      if (this.#closed || this.#running >= this.concurrency) return;
      this.#ready.delete(lane);
      const head = lane.messages.values().next().value;
      if (head === undefined) continue;
      lane.state = "running";
      this.#running += 1;
      this.#rules.start(lane, head);
    }
  }
}
