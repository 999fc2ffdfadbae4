// `stream` triggers: every change of a group in order, without waiting for answers, a bounded number unanswered.
import type { z } from "zod";
import type { Binding, EngineHost } from "../../../ports/host.ts";
import { TriggerDelivery } from "../delivery.ts";
import type { StreamEvent } from "./contract.ts";
import { StreamTriggerConfig } from "./contract.ts";
import type { Told } from "./hub.ts";

type Config = z.output<typeof StreamTriggerConfig>;

function matches(config: Config, { address, entry }: Told): boolean {
  if (config.group_id !== undefined && config.group_id !== address.group_id) return false;
  return config.item_id === undefined || config.item_id === entry.item_id;
}

function eventOf({ address, entry, epoch }: Told, timestamp: number): StreamEvent {
  const { seq, item_id, data, event } = entry;
  return {
    type: "stream",
    timestamp,
    streamName: address.stream_name,
    groupId: address.group_id,
    id: item_id,
    event: event === "event" ? { type: "event", event: data as { type: string; data: unknown } } : { type: event, data },
    seq,
    epoch,
  };
}

/** Installs the trigger type; the result tells a change to its subscribers. */
export function streamTriggers(host: EngineHost): (told: Told) => void {
  const bindings = new Map<string, Map<string, Binding>>();
  const live = new Map<string, string>();
  const rules = { span: "stream_triggers", in_flight: 64, retries: 0, limit: 10_000 };
  const delivery = new TriggerDelivery(host, rules, (binding) => live.has(binding.id));

  const unbind = ({ id }: Binding): void => {
    const stream = live.get(id);
    live.delete(id);
    if (stream === undefined) return;
    const others = bindings.get(stream);
    others?.delete(id);
    if (others?.size === 0) bindings.delete(stream);
  };
  host.triggerType({
    id: "stream",
    description: "Runs a function for each change of a stream's items and for each event sent to it.",
    owner: "iii-stream",
    config: StreamTriggerConfig,
    bind(binding) {
      unbind(binding);
      const { stream_name } = binding.config as Config;
      const others = bindings.get(stream_name) ?? new Map<string, Binding>();
      bindings.set(stream_name, others.set(binding.id, binding));
      live.set(binding.id, stream_name);
    },
    unbind,
  });

  return (told) => {
    const subscribers = bindings.get(told.address.stream_name);
    if (subscribers === undefined) return;
    let payload: StreamEvent | undefined;
    for (const binding of subscribers.values()) {
      const config = binding.config as Config;
      if (!matches(config, told)) continue;
      payload ??= eventOf(told, host.clock.now());
      const lane = JSON.stringify([binding.id, told.address.group_id]);
      delivery.push(lane, { binding, condition: config.condition_function_id, payload, cause: told.cause });
    }
  };
}
