// Queues: work that is accepted once it is on disk and delivered at least once. Named queues come from `config.yaml`; topics fan out.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";
import { BOUNDS } from "../../../core/bounds.ts";

const Name = z.string().min(1).max(BOUNDS.name);
const Origin = z.enum(["agent", "worker", "browser", "engine"]);

export const queueEnqueue = defineFunction({
  id: "engine::queue::enqueue",
  about: "Put one message on a named queue. Answers when it is durable.",
  input: z.object({
    queue: Name,
    function_id: Name,
    data: z.unknown(),
    messageReceiptId: z.string().max(BOUNDS.name).optional(),
    traceparent: z.string().max(BOUNDS.name).nullish(),
    baggage: z.string().max(BOUNDS.baggage).nullish(),
    origin: Origin.optional(),
    delay_ms: z.int().nonnegative().optional(),
    /** While a message with this key waits in or runs from this queue, another one is not added. */
    dedupe_key: z.string().max(1_024).optional(),
  }),
  /** The receipt of the message that is on the queue: an older one's when `dedupe_key` matched it. */
  output: z.object({ messageReceiptId: z.string() }),
});

const byName = (about: string, id: string) =>
  defineFunction({
    id,
    about,
    input: z.object({ queue: z.string().optional(), topic: z.string().optional(), message_id: z.string() }),
    output: z.object({ queue: z.string(), message_id: z.string(), redriven: z.int() }),
  });

export const queueRedrive = defineFunction({
  id: "iii::queue::redrive",
  about: "Put every dead message of a queue back, with no attempts spent.",
  input: z.object({ queue: z.string().optional(), topic: z.string().optional() }),
  output: z.object({ queue: z.string(), redriven: z.int() }),
});
export const queueRedriveMessage = byName("Put one dead message back.", "iii::queue::redrive_message");
export const queueDiscardMessage = byName("Drop one dead message; `redriven` counts it.", "iii::queue::discard_message");

export const durablePublish = defineFunction({
  id: "iii::durable::publish",
  about: "Give every durable subscriber of a topic a copy; kept for the first subscriber when there is none yet.",
  input: z.object({ topic: z.string().max(BOUNDS.name), data: z.unknown() }),
  /** No result. */
  output: z.unknown(),
});

export const queueListTopics = defineFunction({
  id: "engine::queue::list_topics",
  about: "Named queues and topics.",
  input: z.unknown(),
  output: z.array(z.object({ name: z.string(), broker_type: z.string(), subscriber_count: z.int() })),
  effect: "none",
  parallel: true,
});
export const queueTopicStats = defineFunction({
  id: "engine::queue::topic_stats",
  about: "How many messages wait in or run from a queue or topic, and how many are dead.",
  input: z.object({ topic: z.string().optional(), queue: z.string().optional() }),
  output: z.object({ depth: z.int(), consumer_count: z.int(), dlq_depth: z.int(), config: z.null() }),
  effect: "none",
  parallel: true,
});
export const queueDlqTopics = defineFunction({
  id: "engine::queue::dlq_topics",
  about: "Queues and topics that hold dead messages.",
  input: z.unknown(),
  output: z.array(z.object({ topic: z.string(), broker_type: z.string(), message_count: z.int() })),
  effect: "none",
  parallel: true,
});
export const DeadMessage = z.object({
  id: z.string(),
  payload: z.unknown(),
  error: z.string(),
  /** Seconds since the epoch. */
  failed_at: z.number(),
  retries: z.int(),
  size_bytes: z.int(),
});
export const queueDlqMessages = defineFunction({
  id: "engine::queue::dlq_messages",
  about: "The dead messages of a queue or topic, newest first.",
  input: z.object({
    topic: z.string().optional(),
    queue: z.string().optional(),
    offset: z.int().nonnegative().default(0),
    limit: z.int().min(0).max(1_000).default(50),
  }),
  output: z.array(DeadMessage),
  effect: "none",
  parallel: true,
});

/** Config of a `durable:subscriber` trigger. */
export const DurableSubscriberConfig = z.object({
  topic: Name.optional(),
  condition_function_id: z.string().optional(),
  queue_config: z
    .object({
      type: z.string().optional(),
      maxRetries: z.int().nonnegative().optional(),
      concurrency: z.int().min(1).optional(),
      backoffDelayMs: z.int().nonnegative().optional(),
    })
    .optional(),
});
