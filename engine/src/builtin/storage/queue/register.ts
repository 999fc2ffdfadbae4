// Serves the queue functions: enqueue, durable publish, statistics and the dead letters.
import { BusError, redact } from "@iii/sdk";
import type { EngineHost } from "../../../ports/host.ts";
import { causeOf, queuedBaggage } from "../cause.ts";
import type { Ledger } from "../ledger.ts";
import { jsonText } from "../text.ts";
import {
  durablePublish,
  queueDiscardMessage,
  queueDlqMessages,
  queueDlqTopics,
  queueEnqueue,
  queueListTopics,
  queueRedrive,
  queueRedriveMessage,
  queueTopicStats,
} from "./contract.ts";
import type { QueueHub } from "./hub.ts";
import type { Queue } from "./queue.ts";
import type { Topics } from "./topics.ts";

const OWNER = "iii-queue";

interface Deps {
  readonly ledger: Ledger;
  readonly hub: QueueHub;
  readonly topics: Topics;
}

interface Named {
  readonly name: string;
  readonly queues: readonly Queue[];
}

const sum = (queues: readonly Queue[], count: (queue: Queue) => number): number => queues.reduce((total, queue) => total + count(queue), 0);

/** The queues that a name stands for: a named queue, a topic, or a subscriber's own queue. */
function named({ hub, topics }: Deps, input: { queue?: string | undefined; topic?: string | undefined }): Named {
  const name = input.queue ?? input.topic;
  if (name === undefined || name === "") throw new BusError("queue_not_set", "name a queue: {queue} or {topic}");
  const queue = hub.find(name);
  return { name, queues: queue === undefined ? topics.queues(name) : [queue] };
}

export function serveQueues(host: EngineHost, deps: Deps): void {
  serveEnqueue(host, deps);
  serveStatistics(host, deps);
  serveDeadLetters(host, deps);
}

function serveEnqueue(host: EngineHost, { ledger, hub, topics }: Deps): void {
  host.handle(OWNER, queueEnqueue, async (input, call) => {
    const { queue, group } = hub.accepts(input.queue, input.data);
    const own = causeOf(call);
    const cause = {
      ...own,
      traceparent: input.traceparent ?? own.traceparent,
      baggage: queuedBaggage(input.baggage) ?? own.baggage,
      // A mark can be added by what the caller says, never removed.
      origin: input.origin === "agent" ? input.origin : own.origin,
      depth: 0,
    };
    const batch = ledger.batch();
    const receipt = queue.add(batch, {
      function_id: input.function_id,
      data: jsonText(input.data, "the message's data"),
      group,
      cause,
      receipt: input.messageReceiptId,
      delay_ms: input.delay_ms,
      dedupe_key: input.dedupe_key,
    });
    await batch.commit();
    return { messageReceiptId: receipt };
  });
  host.handle(OWNER, durablePublish, ({ topic, data }, call) => topics.publish(topic, data, call));
}

function serveStatistics(host: EngineHost, deps: Deps): void {
  const { hub, topics } = deps;
  const functionQueues = () => hub.queues.filter(({ spec }) => spec.kind === "named");
  host.handle(OWNER, queueListTopics, () => [
    ...functionQueues().map(({ spec }) => ({ name: spec.name, broker_type: "function_queue", subscriber_count: spec.concurrency })),
    ...topics.names().map((name) => ({ name, broker_type: "builtin", subscriber_count: topics.subscribers(name) })),
  ]);
  host.handle(OWNER, queueTopicStats, (input) => {
    const { name, queues } = named(deps, input);
    const [first] = queues;
    const consumers = first?.spec.kind === "named" ? first.spec.concurrency : topics.subscribers(name);
    const depth = sum(queues, (queue) => queue.depth);
    return { depth, consumer_count: consumers, dlq_depth: sum(queues, (queue) => queue.dead.length), config: null };
  });
  host.handle(OWNER, queueDlqTopics, () => {
    const own = hub.queues.filter(({ spec }) => spec.kind !== "topic");
    const rows = [
      ...own.map((queue) => ({ topic: queue.spec.name, broker_type: "function_queue", message_count: queue.dead.length })),
      ...topics.names().map((topic) => ({
        topic,
        broker_type: "builtin",
        message_count: sum(topics.queues(topic), (queue) => queue.dead.length),
      })),
    ];
    return rows.filter(({ message_count }) => message_count > 0);
  });
}

function serveDeadLetters(host: EngineHost, deps: Deps): void {
  const { ledger } = deps;
  host.handle(OWNER, queueDlqMessages, (input) => {
    const dead = named(deps, input).queues.flatMap((queue) => [...queue.dead]);
    dead.sort((left, right) => right.failed_at - left.failed_at || (left.key < right.key ? 1 : -1));
    return dead.slice(input.offset, input.offset + input.limit).map(({ id, data, error, failed_at, attempts }) => ({
      id,
      // The message itself stays whole, so that it can be delivered again; shown are no secrets.
      payload: redact(JSON.parse(data)),
      error,
      failed_at: Math.floor(failed_at / 1_000),
      retries: attempts,
      size_bytes: Buffer.byteLength(data),
    }));
  });
  host.handle(OWNER, queueRedrive, async (input) => {
    const { name, queues } = named(deps, input);
    const batch = ledger.batch();
    const redriven = sum(queues, (queue) => queue.dead.filter(({ id }) => queue.redrive(batch, id)).length);
    await batch.commit();
    return { queue: name, redriven };
  });
  const each = async (
    input: { queue?: string | undefined; topic?: string | undefined; message_id: string },
    act: "redrive" | "discard",
  ): Promise<{ queue: string; message_id: string; redriven: number }> => {
    const { name, queues } = named(deps, input);
    if (input.message_id === "") throw new BusError("message_id_not_set", "'message_id' must not be empty");
    const batch = ledger.batch();
    const done = queues.filter((queue) => queue[act](batch, input.message_id));
    await batch.commit();
    return { queue: name, message_id: input.message_id, redriven: done.length };
  };
  host.handle(OWNER, queueRedriveMessage, (input) => each(input, "redrive"));
  host.handle(OWNER, queueDiscardMessage, (input) => each(input, "discard"));
}
