// Durable topics: each subscribed function has a queue of its own and gets one copy of every message, also while it is away.
import { BusError } from "@iii/sdk";
import type { z } from "zod";
import type { Binding, BuiltinCall, EngineHost } from "../../../ports/host.ts";
import { causeOf } from "../cause.ts";
import type { Ledger } from "../ledger.ts";
import { jsonText } from "../text.ts";
import { DurableSubscriberConfig } from "./contract.ts";
import type { QueueHub } from "./hub.ts";
import type { Queue } from "./queue.ts";
import type { QueueSpec } from "./spec.ts";

type Config = z.output<typeof DurableSubscriberConfig>;

const PREFIX = "__topic:";
const holding = (topic: string): string => PREFIX + JSON.stringify([topic]);
const subscribed = (topic: string, function_id: string): string => PREFIX + JSON.stringify([topic, function_id]);

/** Where a topic's messages wait while nobody has ever subscribed. */
const holdingSpec = (topic: string): QueueSpec => ({
  name: holding(topic),
  kind: "topic",
  topic,
  fifo: false,
  concurrency: 1,
  max_attempts: 1,
  backoff_ms: 0,
});

function specOf(topic: string, { function_id, principal }: Binding, { queue_config: own, condition_function_id }: Config): QueueSpec {
  return {
    name: subscribed(topic, function_id),
    kind: "topic",
    topic,
    fifo: own?.type === "fifo",
    concurrency: own?.concurrency ?? 10,
    max_attempts: own?.maxRetries === undefined ? 3 : own.maxRetries + 1,
    backoff_ms: own?.backoffDelayMs ?? 1_000,
    function_id,
    condition: condition_function_id,
    by: principal,
  };
}

export class Topics {
  readonly #bindings = new Map<string, string>();
  readonly #ledger: Ledger;
  readonly #hub: QueueHub;

  constructor(host: EngineHost, ledger: Ledger, hub: QueueHub) {
    this.#ledger = ledger;
    this.#hub = hub;
    host.triggerType({
      id: "durable:subscriber",
      description: "Runs a function for each message of a durable topic, at least once.",
      owner: "queue",
      config: DurableSubscriberConfig,
      bind: (binding) => this.#bind(binding),
      unbind: (binding) => void this.#bindings.delete(binding.id),
    });
  }

  async publish(topic: string, data: unknown, call: BuiltinCall): Promise<void> {
    if (topic === "") throw new BusError("topic_not_set", "'topic' must not be empty");
    const batch = this.#ledger.batch();
    const text = jsonText(data, "the message's data");
    const subscribers = this.queues(topic).filter(({ spec }) => spec.function_id !== undefined);
    const targets = subscribers.length > 0 ? subscribers : [this.#hub.define(batch, holdingSpec(topic))];
    for (const queue of targets) {
      const { function_id = "", fifo } = queue.spec;
      queue.add(batch, { function_id, data: text, group: fifo ? "" : undefined, cause: { ...causeOf(call), depth: 0 } });
    }
    await batch.commit();
  }

  /** The queues behind a topic: one per subscribed function, and the holding one when it exists. */
  queues(topic: string): readonly Queue[] {
    return this.#hub.queues.filter(({ spec }) => spec.kind === "topic" && spec.topic === topic);
  }

  names(): readonly string[] {
    return [...new Set(this.#hub.queues.flatMap(({ spec }) => (spec.topic === undefined ? [] : [spec.topic])))].sort();
  }

  /** Live bindings on a topic. */
  subscribers(topic: string): number {
    return [...this.#bindings.values()].filter((name) => name === topic).length;
  }

  #bind(binding: Binding): void {
    const config = binding.config as Config;
    const { topic } = config;
    // A binding without a topic is accepted and inert.
    if (topic === undefined) return;
    this.#bindings.set(binding.id, topic);
    const batch = this.#ledger.batch();
    const queue = this.#hub.define(batch, specOf(topic, binding, config));
    const held = this.#hub.find(holding(topic));
    held?.moveTo(batch, queue);
    if (held !== undefined) this.#hub.remove(batch, held);
    void batch.commit().catch(() => undefined);
  }
}
