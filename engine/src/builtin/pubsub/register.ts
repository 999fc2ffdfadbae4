// publish/subscribe: a topic's live subscribers, each called once without waiting. Nothing is stored or repeated.
import { BusError, toBusError } from "@iii/sdk";
import type { CallContext, Principal } from "@iii/sdk/protocol";
import type { Binding, Builtin, EngineHost } from "../../ports/host.ts";
import { checkDepth } from "../depth.ts";
import { publish, SubscribeTriggerConfig } from "./contract.ts";

/** What the published value carries on to its subscribers. */
export interface PublishCause {
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
  readonly origin: CallContext["origin"];
  readonly depth: number;
  readonly principal?: Principal | undefined;
  readonly session?: string | undefined;
}

/** How other built-ins publish. */
export interface PubSub {
  publishTo(topic: string, data: unknown, cause: PublishCause): void;
}

interface Subscriber {
  readonly binding: Binding;
  readonly condition: string | undefined;
}

function whose({ origin, depth, principal, session_id }: CallContext): Pick<PublishCause, "origin" | "depth" | "principal" | "session"> {
  return { origin, depth, principal, session: session_id };
}

export function pubsubBuiltin(): Builtin & PubSub {
  const topics = new Map<string, Map<string, Subscriber>>();
  let host: EngineHost | undefined;

  const deliver = async (to: Subscriber, data: unknown, cause: PublishCause): Promise<void> => {
    const { traceparent, baggage, origin, principal, session } = cause;
    const by = to.binding.principal;
    const about = { payload: data, traceparent, baggage, origin, principal, session, by, depth: cause.depth + 1 };
    try {
      if (to.condition !== undefined && (await host?.invoke({ ...about, function_id: to.condition })) === false) return;
      await host?.invoke({ ...about, function_id: to.binding.function_id });
    } catch (thrown) {
      const { code, message } = toBusError(thrown);
      host?.log.warn({ function_id: to.binding.function_id, code, error: message }, "a subscriber failed");
    }
  };

  const publishTo = (topic: string, data: unknown, cause: PublishCause): void => {
    for (const subscriber of topics.get(topic)?.values() ?? []) void deliver(subscriber, data, cause);
  };

  return {
    name: "pubsub",
    publishTo,
    install(engine) {
      host = engine;
      engine.handle("iii-pubsub", publish, ({ topic, data }, { context, traceparent, baggage }) => {
        if (topic === "") throw new BusError("topic_not_set", "'topic' must not be empty");
        checkDepth(data, "the published value");
        publishTo(topic, data ?? null, { traceparent, baggage, ...whose(context) });
        return undefined;
      });
      engine.triggerType({
        id: "subscribe",
        description: "Runs the function with each value published to `topic`.",
        owner: "iii-pubsub",
        config: SubscribeTriggerConfig,
        bind(binding) {
          const { topic, condition_function_id: condition } = SubscribeTriggerConfig.parse(binding.config);
          const subscribers = topics.get(topic) ?? new Map<string, Subscriber>();
          topics.set(topic, subscribers.set(binding.id, { binding, condition }));
        },
        unbind(binding) {
          const { topic } = SubscribeTriggerConfig.parse(binding.config);
          const subscribers = topics.get(topic);
          subscribers?.delete(binding.id);
          if (subscribers?.size === 0) topics.delete(topic);
        },
      });
      return {};
    },
  };
}
