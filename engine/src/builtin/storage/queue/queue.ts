// One queue: what waits in it, what runs from it, what is dead. Every change of it is part of a ledger batch;
// a message is delivered only after the commit that brought it.
import { type BusError, redactText, toBusError } from "@iii/sdk";
import { Alarms } from "../alarms.ts";
import { backoff, MAX_BACKOFF_MS } from "../backoff.ts";
import type { Cause } from "../cause.ts";
import { type Batch, type Ledger, seqKey } from "../ledger.ts";
import { type Lane, Lanes, type Obstacle } from "./lanes.ts";
import { type DeadMessage, encode, type Message } from "./message.ts";
import { type Delivery, type Outcome, type PerformDeps, perform, targetOf } from "./perform.ts";
import type { QueueSpec } from "./spec.ts";

export interface NewMessage {
  readonly function_id: string;
  readonly data: string;
  readonly group: string | undefined;
  readonly cause: Cause;
  readonly receipt?: string | undefined;
  readonly delay_ms?: number | undefined;
  readonly dedupe_key?: string | undefined;
}

const MAX_INTERRUPTIONS = 20;

export interface QueueDeps extends PerformDeps {
  readonly ledger: Ledger;
}

export class Queue {
  #spec: QueueSpec;
  readonly #deps: QueueDeps;
  readonly #lanes: Lanes;
  readonly #live = new Map<string, Message>();
  readonly #dead = new Map<string, DeadMessage>();
  readonly #dedupe = new Map<string, Message>();
  readonly #interruptions = new Map<string, number>();
  /** Monotonic times before which messages do not run, by key. */
  readonly #waits = new Map<string, number>();
  readonly #alarms: Alarms;
  #stopped = false;

  constructor(spec: QueueSpec, deps: QueueDeps) {
    this.#spec = spec;
    this.#deps = deps;
    this.#alarms = new Alarms(deps.host.clock);
    this.#lanes = new Lanes(spec.concurrency, {
      obstacle: (head) => this.#obstacle(head),
      wakeAt: (until, lane) => this.#alarms.at(until, () => this.#lanes.wake(lane)),
      start: (lane, head) => void this.#run(lane, head).catch((thrown: unknown) => this.#deps.host.fatal(toBusError(thrown))),
    });
  }

  get spec(): QueueSpec {
    return this.#spec;
  }
  get space(): string {
    return `queue:${this.#spec.name}`;
  }
  get deadSpace(): string {
    return `dlq:${this.#spec.name}`;
  }
  /** Messages that wait or run. */
  get depth(): number {
    return this.#live.size;
  }
  /** Dead messages, oldest first. */
  get dead(): readonly DeadMessage[] {
    return [...this.#dead.values()];
  }
  get waiting(): readonly Message[] {
    return [...this.#live.values()];
  }

  /** Takes over new delivery rules; messages that are here stay. */
  define(spec: QueueSpec): void {
    this.#spec = spec;
    this.#lanes.concurrency = spec.concurrency;
    this.#lanes.reconsider();
  }

  /** Puts back what the store had. Call for messages in order of their keys, then `open` the flow with `served` events. */
  restore(message: Message): void {
    this.#remember(message);
    const now = this.#deps.host.clock.now();
    // The clock may have been set since: no wait becomes longer than it was meant to be.
    const delay = Math.min(message.due_at - now, message.due_at - message.created_at);
    this.#wait(message, Math.max(delay, Math.min(message.retry_at - now, MAX_BACKOFF_MS)));
    this.#admit(message);
  }
  restoreDead(message: DeadMessage): void {
    this.#dead.set(message.id, message);
  }

  /** A row that holds no message leaves the queue for the dead letters. */
  bury(batch: Batch, dead: DeadMessage): void {
    batch.remove(this.space, dead.key);
    batch.put(this.deadSpace, dead.key, encode(dead));
    this.restoreDead(dead);
  }

  /** Adds a message to `batch`; one with the same dedupe key that is still here makes this a no-op. Returns the receipt. */
  add(batch: Batch, input: NewMessage): string {
    const twin = input.dedupe_key === undefined ? undefined : this.#dedupe.get(input.dedupe_key);
    if (twin !== undefined) return twin.receipt;
    const { host, ledger } = this.#deps;
    const now = host.clock.now();
    const message: Message = {
      id: host.random.uuid(),
      key: seqKey(ledger.next()),
      function_id: input.function_id,
      data: input.data,
      receipt: input.receipt ?? host.random.uuid(),
      group: input.group,
      dedupe_key: input.dedupe_key,
      cause: input.cause,
      created_at: now,
      due_at: input.delay_ms === undefined ? 0 : now + input.delay_ms,
      attempts: 0,
      retry_at: 0,
    };
    this.#wait(message, input.delay_ms ?? 0);
    this.#insert(batch, message);
    return message.receipt;
  }

  /** Ends a message in `batch`: its row goes, its dedupe key is free. The lane goes on when the delivery has returned. */
  settle(batch: Batch, message: Message): void {
    batch.remove(this.space, message.key);
    this.#forget(message);
  }

  /** Moves a dead message back with a clean record; it keeps its id. False: there is none, or nothing that could be delivered. */
  redrive(batch: Batch, id: string): boolean {
    const dead = this.#dead.get(id);
    if (dead === undefined || dead.unreadable === true) return false;
    const { error: _error, failed_at: _at, ...message } = dead;
    this.discard(batch, id);
    this.#insert(batch, { ...message, key: seqKey(this.#deps.ledger.next()), attempts: 0, retry_at: 0, due_at: 0 });
    return true;
  }

  discard(batch: Batch, id: string): boolean {
    const dead = this.#dead.get(id);
    if (dead === undefined) return false;
    this.#dead.delete(id);
    batch.remove(this.deadSpace, dead.key);
    return true;
  }

  /** Gives every waiting message to another queue (a topic's first subscriber). Only for queues that deliver to nobody. */
  moveTo(batch: Batch, other: Queue): void {
    for (const message of this.waiting) {
      this.settle(batch, message);
      other.#insert(batch, { ...message, key: seqKey(this.#deps.ledger.next()), group: other.spec.fifo ? "" : undefined });
    }
  }

  served(function_id: string): void {
    this.#lanes.served(function_id);
  }

  stop(): void {
    this.#stopped = true;
    this.#lanes.close();
    this.#alarms.stop();
  }

  #insert(batch: Batch, message: Message): void {
    batch.put(this.space, message.key, encode(message));
    this.#remember(message);
    batch.after(() => this.#admit(message));
  }

  #remember(message: Message): void {
    this.#live.set(message.key, message);
    if (message.dedupe_key !== undefined) this.#dedupe.set(message.dedupe_key, message);
  }

  #forget(message: Message): void {
    this.#live.delete(message.key);
    this.#waits.delete(message.key);
    this.#interruptions.delete(message.key);
    if (message.dedupe_key !== undefined && this.#dedupe.get(message.dedupe_key) === message) this.#dedupe.delete(message.dedupe_key);
  }

  /** A delayed message joins its lane when it is due, so that it never holds up its group. */
  #admit(message: Message): void {
    if (this.#stopped || !this.#live.has(message.key)) return;
    const until = this.#waits.get(message.key);
    if (until !== undefined && until > this.#deps.host.clock.monotonic()) this.#alarms.at(until, () => this.#admit(message));
    else this.#lanes.add(message);
  }

  #wait(message: Message, ms: number): void {
    if (ms > 0) this.#waits.set(message.key, this.#deps.host.clock.monotonic() + ms);
    else this.#waits.delete(message.key);
  }

  /** Not before `ms` from now; noted as a date for a later run. */
  #retryIn(message: Message, ms: number): void {
    message.retry_at = this.#deps.host.clock.now() + ms;
    this.#wait(message, ms);
  }

  #obstacle(head: Message): Obstacle | undefined {
    const { host } = this.#deps;
    const until = this.#waits.get(head.key);
    if (until !== undefined && until > host.clock.monotonic()) return { type: "backoff", until };
    const function_id = targetOf(this.#spec, head);
    return host.isServed(function_id) ? undefined : { type: "unserved", function_id };
  }

  async #run(lane: Lane, message: Message): Promise<void> {
    const delivery: Delivery = { message, settled: false, settle: (batch) => this.settle(batch, message) };
    const outcome = await perform(this.#deps, this.#spec, delivery);
    if (this.#stopped) return;
    if (delivery.settled) await this.#deps.ledger.settled(this.space, message.key);
    else await this.#conclude(message, outcome);
    this.#lanes.finished(lane, message, !this.#live.has(message.key));
  }

  /** Writes down how a delivery ended, when the handler has not settled it itself. */
  async #conclude(message: Message, outcome: Outcome): Promise<void> {
    if (outcome === "unserved") return;
    const batch = this.#deps.ledger.batch();
    if (outcome === "done") this.settle(batch, message);
    else if (outcome === "interrupted" && this.#interrupted(message)) return;
    else this.#failed(batch, message, outcome);
    await batch.commit();
  }

  /** A lost executor costs no attempt, until it has happened too often in a row. Says whether it cost none. */
  #interrupted(message: Message): boolean {
    const count = (this.#interruptions.get(message.key) ?? 0) + 1;
    if (count >= MAX_INTERRUPTIONS) return false;
    this.#interruptions.set(message.key, count);
    this.#retryIn(message, backoff(this.#spec.backoff_ms, count));
    return true;
  }

  #failed(batch: Batch, message: Message, outcome: BusError | string): void {
    const { host } = this.#deps;
    const error = typeof outcome === "string" ? `the executor went away ${MAX_INTERRUPTIONS} times in a row` : outcome.message;
    const code = typeof outcome === "string" ? "invocation_stopped" : outcome.code;
    const where = { queue: this.#spec.name, function_id: targetOf(this.#spec, message), message_id: message.id, code, error };
    message.attempts += 1;
    this.#interruptions.delete(message.key);
    if (message.attempts >= Math.max(1, this.#spec.max_attempts)) {
      host.log.error({ ...where, attempts: message.attempts }, "a queue message is dead: no attempts left");
      this.settle(batch, message);
      const dead: DeadMessage = { ...message, error: redactText(`${code}: ${error}`), failed_at: host.clock.now() };
      this.#dead.set(message.id, dead);
      batch.put(this.deadSpace, message.key, encode(dead));
      return;
    }
    this.#retryIn(message, backoff(this.#spec.backoff_ms, message.attempts));
    host.log.warn({ ...where, attempts: message.attempts }, "a queue message failed and will be tried again");
    batch.put(this.space, message.key, encode(message));
  }
}
