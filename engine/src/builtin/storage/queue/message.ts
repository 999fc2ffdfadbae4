// A queue message as it is kept, and the pure rules around it: encoding and groups.
import { BusError } from "@iii/sdk";
import type { Cause } from "../cause.ts";

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
  /** The date at which a delayed message is due, for a later run of the engine: this run counts on the monotonic clock. */
  readonly due_at: number;
  attempts: number;
  /** The date before which the next attempt is not made, likewise. */
  retry_at: number;
}

export interface DeadMessage extends Message {
  readonly error: string;
  readonly failed_at: number;
  /** The row holds no message, `data` is its text: there is nothing to deliver. */
  readonly unreadable?: true;
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
