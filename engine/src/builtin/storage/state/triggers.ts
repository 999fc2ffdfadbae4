// `state` triggers: found by scope and key, so that a write costs nothing for those it cannot match.
// A durable consumer's events commit with the write and wait in its own queue; the others leave after the commit.
import { BusError } from "@iii/sdk";
import type { z } from "zod";
import type { Binding, EngineHost } from "../../../ports/host.ts";
import type { Cause } from "../cause.ts";
import { TriggerDelivery } from "../delivery.ts";
import type { Batch, Ledger } from "../ledger.ts";
import type { QueueHub } from "../queue/hub.ts";
import type { Queue } from "../queue/queue.ts";
import { type StateEvent, StateTriggerConfig } from "./contract.ts";
import type { Change } from "./table.ts";

type Config = z.output<typeof StateTriggerConfig>;
type Consumer = { type: "durable"; queue: Queue } | { type: "live"; binding: Binding; condition: string | undefined };

/** Writes nested deeper than this in trigger-made calls are refused when they would fire again. */
const MAX_TRIGGER_DEPTH = 16;

const slot = (scope: string | undefined, key: string | undefined): string => JSON.stringify([scope ?? null, key ?? null]);

class Index {
  readonly #slots = new Map<string, Map<string, Consumer>>();
  readonly #places = new Map<string, string>();

  put(id: string, filter: { scope?: string | undefined; key?: string | undefined }, consumer: Consumer): void {
    this.remove(id);
    const name = slot(filter.scope, filter.key);
    const consumers = this.#slots.get(name) ?? new Map<string, Consumer>();
    this.#slots.set(name, consumers.set(id, consumer));
    this.#places.set(id, name);
  }

  has(id: string): boolean {
    return this.#places.has(id);
  }

  remove(id: string): void {
    const name = this.#places.get(id);
    if (name === undefined) return;
    this.#places.delete(id);
    const consumers = this.#slots.get(name);
    consumers?.delete(id);
    if (consumers?.size === 0) this.#slots.delete(name);
  }

  match(scope: string, key: string): readonly Consumer[] {
    if (this.#slots.size === 0) return [];
    const names = [slot(scope, key), slot(scope, undefined), slot(undefined, key), slot(undefined, undefined)];
    return names.flatMap((name) => [...(this.#slots.get(name)?.values() ?? [])]);
  }
}

function eventOf({ scope, key, old, now, rev }: Change): StateEvent {
  const kind = now === undefined ? "deleted" : old === undefined ? "created" : "updated";
  return {
    type: "state",
    event_type: `state:${kind}`,
    scope,
    key,
    old_value: old?.value ?? null,
    new_value: now?.value ?? null,
    rev,
    event_id: `${scope}/${key}/${rev}`,
  };
}

export class StateTriggers {
  readonly #index = new Index();
  readonly #ledger: Ledger;
  readonly #hub: QueueHub;
  readonly #delivery: TriggerDelivery;

  constructor(host: EngineHost, ledger: Ledger, hub: QueueHub) {
    this.#ledger = ledger;
    this.#hub = hub;
    const rules = { span: "state_triggers", in_flight: 1, retries: 5, limit: 10_000 };
    this.#delivery = new TriggerDelivery(host, rules, (binding) => this.#index.has(binding.id));
    host.triggerType({
      id: "state",
      description: "Runs a function when a state value is created, updated or deleted.",
      owner: "iii-state",
      config: StateTriggerConfig,
      bind: (binding) => this.#bind(binding),
      // A durable consumer stays: it collects while its worker is away.
      unbind: (binding) => this.#index.remove(binding.id),
    });
  }

  /** Takes up the durable consumers that earlier engines knew. */
  restore(): void {
    for (const queue of this.#hub.queues) {
      if (queue.spec.kind === "state") this.#index.put(queue.spec.name, queue.spec.filter ?? {}, { type: "durable", queue });
    }
  }

  /** @throws BusError `trigger_loop` when a write this deep would fire a trigger once more. */
  guard(scope: string, key: string, depth: number): void {
    if (depth <= MAX_TRIGGER_DEPTH || this.#index.match(scope, key).length === 0) return;
    throw new BusError("trigger_loop", `the write to ${scope}/${key} is ${depth} calls deep and would fire a state trigger again`, {
      details: { scope, key, depth },
    });
  }

  /** Adds what `change` sets off to the batch that makes it. */
  emit(batch: Batch, change: Change, cause: Cause): void {
    const consumers = this.#index.match(change.scope, change.key);
    if (consumers.length === 0) return;
    // A delete of nothing leaves no row that holds its number, and its event is known by it.
    if (change.old === undefined && change.now === undefined) this.#ledger.keepRev(batch);
    const payload = eventOf(change);
    const group = JSON.stringify([change.scope, change.key]);
    for (const consumer of consumers) {
      if (consumer.type === "durable") {
        const { function_id = "" } = consumer.queue.spec;
        const deeper = { ...cause, depth: cause.depth + 1 };
        consumer.queue.add(batch, { function_id, data: JSON.stringify(payload), group, cause: deeper });
      } else {
        const { binding, condition } = consumer;
        batch.after(() => this.#delivery.push(JSON.stringify([binding.id, group]), { binding, condition, payload, cause }));
      }
    }
  }

  #bind(binding: Binding): void {
    const { scope, key, condition_function_id: condition, durable } = binding.config as Config;
    if (durable === undefined) {
      this.#index.put(binding.id, { scope, key }, { type: "live", binding, condition });
      return;
    }
    const batch = this.#ledger.batch();
    const queue = this.#hub.define(batch, {
      name: `__state:${durable}`,
      kind: "state",
      fifo: true,
      concurrency: 64,
      // About three hours of trying at the longest backoff; then the event is dead, visible and can be redriven.
      max_attempts: 1_000,
      backoff_ms: 200,
      filter: { scope, key },
      function_id: binding.function_id,
      condition,
      metadata: binding.metadata ?? undefined,
      by: binding.principal,
    });
    this.#index.put(queue.spec.name, { scope, key }, { type: "durable", queue });
    void batch.commit().catch(() => undefined);
  }
}
