// All queues: the named ones of the configuration, and one per durable subscriber of a topic or of state changes.
import { BusError } from "@iii/sdk";
import type { QueueConfig } from "../../../config/schema.ts";
import type { EngineHost } from "../../../ports/host.ts";
import type { Batch, Ledger } from "../ledger.ts";
import { decode } from "../text.ts";
import { type DeadMessage, groupOf, type Message } from "./message.ts";
import type { Delivery } from "./perform.ts";
import { Queue } from "./queue.ts";
import type { QueueSpec } from "./spec.ts";

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
    for (const row of this.#ledger.rows(CONSUMERS)) {
      const spec = decode<QueueSpec>(row);
      if (!this.#queues.has(spec.name)) this.#create(spec);
    }
    for (const row of this.#ledger.rows("queue:")) {
      this.#restored(row.space.slice("queue:".length)).restore(decode<Message>(row));
    }
    for (const row of this.#ledger.rows("dlq:")) {
      this.#restored(row.space.slice("dlq:".length)).restoreDead(decode<DeadMessage>(row));
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
