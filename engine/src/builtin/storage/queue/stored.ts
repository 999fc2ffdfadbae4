// How messages and delivery rules stand in the store, and how they are read back: what has another shape is never taken for one.
import { issueText } from "@iii/sdk";
import { z } from "zod";
import type { Row } from "../../../ports/store.ts";
import { decode } from "../text.ts";
import type { DeadMessage, Message } from "./message.ts";
import type { QueueSpec } from "./spec.ts";

const Time = z.number().nonnegative();
const PrincipalRow = z.object({ kind: z.enum(["operator", "entry", "none"]), name: z.string() });
const MessageRow = z.object({
  id: z.string().min(1),
  key: z.string(),
  function_id: z.string(),
  data: z.string(),
  receipt: z.string(),
  group: z.string().optional(),
  dedupe_key: z.string().optional(),
  cause: z.object({
    traceparent: z.string().optional(),
    woken_by: z.string().optional(),
    baggage: z.string().optional(),
    origin: z.enum(["agent", "worker", "browser", "engine"]),
    depth: z.int().nonnegative(),
    principal: PrincipalRow.optional(),
    session: z.string().optional(),
  }),
  created_at: Time,
  due_at: Time,
  attempts: z.int().nonnegative(),
  retry_at: Time,
});
const DeadRow = MessageRow.extend({ error: z.string(), failed_at: Time, unreadable: z.literal(true).optional() });
const SpecRow = z.object({
  name: z.string().min(1),
  kind: z.enum(["named", "state", "topic"]),
  concurrency: z.int().min(1),
  max_attempts: z.int().nonnegative(),
  backoff_ms: z.number().nonnegative(),
  group_field: z.string().optional(),
  fifo: z.boolean(),
  filter: z.object({ scope: z.string().optional(), key: z.string().optional() }).optional(),
  topic: z.string().optional(),
  function_id: z.string().optional(),
  condition: z.string().optional(),
  by: PrincipalRow.optional(),
});

const shapeOf = (schema: z.ZodType) => (value: unknown) => {
  const parsed = schema.safeParse(value);
  return parsed.success ? undefined : issueText(parsed.error, "it");
};

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A message's row: it must also stand under its own key and carry JSON. */
function messageShape(schema: z.ZodType, key: string): (value: unknown) => string | undefined {
  const shape = shapeOf(schema);
  return (value) => {
    const problem = shape(value);
    if (problem !== undefined) return problem;
    const message = value as Message;
    if (message.key !== key) return `it says that its key is '${message.key}'`;
    return isJson(message.data) ? undefined : "'data' is not JSON";
  };
}

/** @throws BusError `store_corrupt` */
export const readMessage = (row: Row): Message => decode(row, messageShape(MessageRow, row.key));
/** @throws BusError `store_corrupt` */
export const readDead = (row: Row): DeadMessage => decode(row, messageShape(DeadRow, row.key));
/** @throws BusError `store_corrupt` */
export const readSpec = (row: Row): QueueSpec =>
  decode(row, (value) => shapeOf(SpecRow)(value) ?? ((value as QueueSpec).name === row.key ? undefined : "it stands under another name"));

/** A row that cannot be read, as a dead letter that shows its text. It can be discarded, never delivered. */
export function unreadableMessage(row: Row, reason: string, now: number): DeadMessage {
  return {
    id: `unreadable-${row.key}`,
    key: row.key,
    function_id: "",
    data: JSON.stringify(row.value),
    receipt: "",
    group: undefined,
    dedupe_key: undefined,
    cause: { traceparent: undefined, baggage: undefined, origin: "agent", depth: 0 },
    created_at: 0,
    due_at: 0,
    attempts: 0,
    retry_at: 0,
    error: reason,
    failed_at: now,
    unreadable: true,
  };
}
