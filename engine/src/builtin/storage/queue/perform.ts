// One delivery of one message: the call of its handler, under the message's own trace, mark and baggage.
import { type BusError, toBusError } from "@iii/sdk";
import { type EngineHost, type EngineInvocation, Unanswered } from "../../../ports/host.ts";
import type { Batch } from "../ledger.ts";
import type { Message } from "./message.ts";
import type { QueueSpec } from "./spec.ts";

/** A delivery in progress. `settled` is set by the batch that acknowledges it. */
export interface Delivery {
  readonly message: Message;
  settled: boolean;
  /** Ends the message as part of `batch`. */
  settle(batch: Batch): void;
}

export interface PerformDeps {
  readonly host: EngineHost;
  /** Deliveries by the id of the handler's invocation. */
  readonly running: Map<string, Delivery>;
}

export type Outcome = "done" | "unserved" | "interrupted" | BusError;

/** The executor went away or never got the call: nothing is known against the message. */
const INTERRUPTIONS = new Set(["invocation_stopped", "channel_send_failed", "too_many_in_flight"]);
const isInterruption = (error: BusError): boolean => error instanceof Unanswered && INTERRUPTIONS.has(error.code);

/** The function that a message goes to: the subscriber's, when the queue belongs to one. */
export const targetOf = (spec: QueueSpec, message: Message): string => spec.function_id ?? message.function_id;

/** Calls the handler of a message and says how that ended. Never throws. */
export async function perform({ host, running }: PerformDeps, spec: QueueSpec, delivery: Delivery): Promise<Outcome> {
  const { message } = delivery;
  const invocation_id = host.random.uuid();
  const { traceparent, woken_by, baggage, origin, depth, principal, session } = message.cause;
  const span = host.tracer.start(`fn_queue ${spec.name}`, {
    traceparent,
    baggage,
    kind: "consumer",
    attributes: { "iii.queue.name": spec.name, "iii.queue.attempt": String(message.attempts + 1) },
    links: woken_by === undefined ? [] : [woken_by],
  });
  const call: EngineInvocation = {
    function_id: targetOf(spec, message),
    raw: message.data,
    metadata: spec.metadata,
    traceparent: span.traceparent === "" ? undefined : span.traceparent,
    baggage,
    origin,
    session,
    principal,
    by: spec.by,
    depth,
    timeout_ms: 0,
    invocation_id,
    lease: true,
  };
  running.set(invocation_id, delivery);
  try {
    if (await wanted(host, spec, call)) await host.invoke(call);
    span.end();
    return "done";
  } catch (thrown) {
    const error = toBusError(thrown);
    span.end(delivery.settled ? undefined : { code: error.code, message: error.message });
    if (error.code === "function_not_found" && !host.isServed(call.function_id)) return "unserved";
    return isInterruption(error) ? "interrupted" : error;
  } finally {
    running.delete(invocation_id);
  }
}

/** The condition's verdict: only `false` skips. A condition that fails is a failed attempt. */
async function wanted(host: EngineHost, { condition }: QueueSpec, call: EngineInvocation): Promise<boolean> {
  if (condition === undefined) return true;
  const { metadata: _none, invocation_id: _other, ...rest } = call;
  return (await host.invoke({ ...rest, function_id: condition })) !== false;
}
