// All queues: the named ones of the configuration, and one per durable subscriber of a topic or of state changes.
import { BusError, toBusError } from "@iii/sdk";
import type { QueueConfig } from "../../../config/schema.ts";
import type { EngineHost } from "../../../ports/host.ts";
import type { Row } from "../../../ports/store.ts";
import type { Batch, Ledger } from "../ledger.ts";
import { groupOf } from "./message.ts";
import type { Delivery } from "./perform.ts";
import { Queue } from "./queue.ts";
import type { QueueSpec } from "./spec.ts";
import { readDead, readMessage, readSpec, unreadableMessage } from "./stored.ts";

const CONSUMERS = "consumers";

const DEFAULT: QueueConfig = { type: "standard", concurrency: 10, max_retries: 3, backoff_ms: 1_000 };

function namedSpec(name: string, config: QueueConfig): QueueSpec {
  const fifo = config.type === "fifo";
  if (fifo && config.message_group_field === undefined) {
    throw new BusError("config_invalid", `queue '${name}' is fifo and needs message_group_field`, { details: { queue: name } });
  }
  return {
    name,
    kind: "named",
    fifo,
    group_field: fifo ? config.message_group_field : undefined,
    concurrency: config.concurrency,
    max_attempts: config.max_retries,
    backoff_ms: config.backoff_ms,
  };
}

/** Delivers to nobody: no function has an empty id. */
const heldSpec = (name: string): QueueSpec => ({
  name,
  kind: "held",
  fifo: true,
  concurrency: 1,
  max_attempts: 1,
  backoff_ms: 0,
  function_id: "",
});

export class QueueHub {
  readonly #queues = new Map<string, Queue>();
  readonly #running = new Map<string, Delivery>();
  readonly #host: EngineHost;
  readonly #ledger: Ledger;

  constructor(host: EngineHost, ledger: Ledger, named: Readonly<Record<string, QueueConfig>>) {
    this.#host = host;
    this.#ledger = ledger;
    for (const [name, config] of Object.entries({ default: DEFAULT, ...named })) this.#create(namedSpec(name, config));
    host.onFunctions(({ added }) => {
      for (const id of added) this.#served(id);
    });
  }

  /** Fills the queues from the loaded rows; messages that were running when the engine died are delivered again. */
  restore(): void {
    for (const row of this.#ledger.rows(CONSUMERS)) this.#restoreSpec(row);
    const batch = this.#ledger.batch();
    for (const row of this.#ledger.rows("queue:")) this.#restoreMessage(batch, row);
    for (const row of this.#ledger.rows("dlq:")) this.#restoreDead(row);
    void batch.commit().catch(() => undefined);
  }

  #restoreSpec(row: Row): void {
    try {
      const spec = readSpec(row);
      if (!this.#queues.has(spec.name)) this.#create(spec);
    } catch (thrown) {
      this.#host.log.error({ err: thrown, queue: row.key }, "the rules of a queue cannot be read: it waits for its subscriber");
      if (!this.#queues.has(row.key)) this.#create(heldSpec(row.key));
    }
  }

  /** A row that holds no message goes to the dead letters, with the reason. */
  #restoreMessage(batch: Batch, row: Row): void {
    this.#ledger.reached(Number(row.key));
    const queue = this.#restored(row.space.slice("queue:".length));
    try {
      queue.restore(readMessage(row));
    } catch (thrown) {
      const { message } = toBusError(thrown);
      this.#host.log.error({ queue: queue.spec.name, message_id: row.key, error: message }, "a queue message is dead: it cannot be read");
      queue.bury(batch, unreadableMessage(row, message, this.#host.clock.now()));
    }
  }

  #restoreDead(row: Row): void {
    this.#ledger.reached(Number(row.key));
    const queue = this.#restored(row.space.slice("dlq:".length));
    try {
      queue.restoreDead(readDead(row));
    } catch (thrown) {
      queue.restoreDead(unreadableMessage(row, toBusError(thrown).message, this.#host.clock.now()));
    }
  }

  get queues(): readonly Queue[] {
    return [...this.#queues.values()];
  }

  find(name: string): Queue | undefined {
    return this.#queues.get(name);
  }

  /** The named queue and the group for this payload. @throws BusError `enqueue_error` when there is none. */
  accepts(name: string, data: unknown): { queue: Queue; group: string | undefined } {
    const queue = this.#queues.get(name);
    if (queue === undefined || queue.spec.kind !== "named") throw new BusError("enqueue_error", `Queue '${name}' not found`);
    const { group_field } = queue.spec;
    return { queue, group: group_field === undefined ? undefined : groupOf(name, group_field, data) };
  }

  /** Makes or changes a subscriber's queue; its rules are kept with `batch`. */
  define(batch: Batch, spec: QueueSpec): Queue {
    const known = this.#queues.get(spec.name);
    const text = JSON.stringify(spec);
    if (known !== undefined && JSON.stringify(known.spec) === text) return known;
    batch.put(CONSUMERS, spec.name, text);
    if (known === undefined) return this.#create(spec);
    known.define(spec);
    return known;
  }

  /** Forgets a queue that holds nothing any more. */
  remove(batch: Batch, { spec }: Queue): void {
    this.#queues.delete(spec.name);
    batch.remove(CONSUMERS, spec.name);
  }

  /** The open delivery whose handler is this invocation. @throws BusError `fenced` when it is none, or is settled already. */
  delivery(invocation_id: string | undefined): Delivery {
    const delivery = invocation_id === undefined ? undefined : this.#running.get(invocation_id);
    if (delivery === undefined || delivery.settled) {
      throw new BusError("fenced", "ack: this call is not made by the handler of an open queue delivery; nothing was changed");
    }
    return delivery;
  }

  stop(): void {
    for (const queue of this.#queues.values()) queue.stop();
  }

  #served(function_id: string): void {
    for (const queue of this.#queues.values()) queue.served(function_id);
  }

  /** A queue that has rows but is no longer configured keeps them, and delivers by the default rules. */
  #restored(name: string): Queue {
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    this.#host.log.warn({ queue: name }, "a queue holds messages and is not in the configuration; the default rules are used");
    return this.#create(namedSpec(name, DEFAULT));
  }

  #create(spec: QueueSpec): Queue {
    const queue = new Queue(spec, { host: this.#host, ledger: this.#ledger, running: this.#running });
    this.#queues.set(spec.name, queue);
    return queue;
  }
}
