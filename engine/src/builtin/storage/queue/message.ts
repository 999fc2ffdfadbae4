// A queue message as it is kept, and the pure rules around it: encoding, groups, backoff.
import { BusError } from "@iii/sdk";
import type { CallContext } from "@iii/sdk/protocol";
import type { BuiltinCall } from "../../../ports/host.ts";

/** What a piece of stored work remembers of the call that made it. */
export interface Cause {
  readonly traceparent: string | undefined;
  /** The trace context of what woke work that runs under a trace of its own. */
  readonly woken_by?: string | undefined;
  readonly baggage: string | undefined;
  readonly origin: CallContext["origin"];
  readonly depth: number;
}

export interface Message {
  readonly id: string;
  /** The row key: sorts in order of enqueueing. */
  readonly key: string;
  readonly function_id: string;
  /** The payload as JSON text, handed on byte for byte. */
  readonly data: string;
  readonly receipt: string;
  readonly group: string | undefined;
  readonly dedupe_key: string | undefined;
  readonly cause: Cause;
  readonly created_at: number;
  /** Wall-clock ms before which a delayed message is not due. */
  readonly due_at: number;
  attempts: number;
  /** Wall-clock ms before which the next attempt is not made. */
  retry_at: number;
}

export interface DeadMessage extends Message {
  readonly error: string;
  readonly failed_at: number;
}

const MAX_BACKOFF_MS = 10_000;
const HIDDEN_BAGGAGE = /^\s*iii\.tag\.(?:kind|display_name|hidden)\s*=/;

/** How long to wait after the `failures`-th failure in a row (from 1). */
export function backoff(baseMs: number, failures: number): number {
  return Math.min(baseMs * 2 ** Math.min(failures - 1, 20), MAX_BACKOFF_MS);
}

/** Baggage as a message keeps it: without the marks that describe the enqueuing span. */
export function queuedBaggage(baggage: string | null | undefined): string | undefined {
  const kept = (baggage ?? "").split(",").filter((entry) => entry.trim() !== "" && !HIDDEN_BAGGAGE.test(entry));
  return kept.length === 0 ? undefined : kept.join(",");
}

/** What work made by this call remembers. */
export function causeOf(call: BuiltinCall): Cause {
  return {
    traceparent: call.traceparent,
    baggage: queuedBaggage(call.baggage),
    origin: call.context.origin,
    depth: call.context.depth,
  };
}

/** The group of a fifo message. @throws BusError `enqueue_error` naming the queue and the field that is missing. */
export function groupOf(queue: string, field: string, data: unknown): string {
  const value = typeof data === "object" && data !== null ? (data as Record<string, unknown>)[field] : undefined;
  if (value === undefined || value === null) {
    throw new BusError("enqueue_error", `queue '${queue}' is fifo: data.${field} must be set, it names the message's group`, {
      details: { queue, field },
    });
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

export const encode = (message: Message | DeadMessage): string => JSON.stringify(message);
