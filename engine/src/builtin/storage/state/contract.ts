// state::*: values under (scope, key), each write with a store-wide rising revision.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";
import { BOUNDS } from "../../../core/bounds.ts";

/** Names are kept as UTF-8: half a surrogate pair would come back as another name. */
const wellFormed = (text: string): boolean => text.isWellFormed();
const Scope = z.string().min(1).max(512).refine(wellFormed, "must be well-formed Unicode");
const Key = z.string().max(1024).refine(wellFormed, "must be well-formed Unicode");
const Address = z.object({ scope: Scope, key: Key });

/**
 * One update operation. Checked op by op by the handler, so that one bad path is an entry in `errors` and not a failed call;
 * only a malformed op (unknown type, missing field) fails the whole call with `deserialization_error`.
 */
export const StateOp = z.discriminatedUnion("type", [
  z.object({ type: z.literal("set"), path: z.string(), value: z.unknown().optional() }),
  z.object({ type: z.literal("merge"), path: z.union([z.string(), z.array(z.string())]).optional(), value: z.unknown() }),
  z.object({ type: z.literal("increment"), path: z.string(), by: z.int() }),
  z.object({ type: z.literal("decrement"), path: z.string(), by: z.int() }),
  z.object({ type: z.literal("append"), path: z.union([z.string(), z.array(z.string())]).optional(), value: z.unknown() }),
  z.object({ type: z.literal("remove"), path: z.string() }),
]);
export type StateOp = z.infer<typeof StateOp>;

export const StateOpError = z.object({ op_index: z.int(), code: z.string(), message: z.string() });
export type StateOpError = z.infer<typeof StateOpError>;

export const stateSet = defineFunction({
  id: "state::set",
  about: "Store a value under a scope and key. `data` is accepted for `value`.",
  input: z.object({ scope: Scope, key: Key, value: z.unknown().optional(), data: z.unknown().optional() }),
  output: z.object({ old_value: z.unknown(), new_value: z.unknown() }),
});
export const stateGet = defineFunction({
  id: "state::get",
  about: "Read a value; no result when there is none.",
  input: Address,
  output: z.unknown(),
  effect: "none",
  parallel: true,
});
export const stateGetWithRev = defineFunction({
  id: "state::get_with_rev",
  about: "Read a value with its revision; revision 0 and value null when there is none.",
  input: Address,
  output: z.object({ value: z.unknown(), rev: z.int().nonnegative() }),
  effect: "none",
  parallel: true,
});
export const stateDelete = defineFunction({
  id: "state::delete",
  about: "Remove a value and return it.",
  input: Address,
  output: z.unknown(),
});
export const stateUpdate = defineFunction({
  id: "state::update",
  about: "Apply operations to one value under one lock; a failing operation is skipped and reported.",
  input: z.object({ scope: Scope, key: Key, ops: z.array(StateOp) }),
  output: z.object({ old_value: z.unknown(), new_value: z.unknown(), errors: z.array(StateOpError).optional() }),
});
export const stateList = defineFunction({
  id: "state::list",
  about: "All values of a scope, in insertion order. With `with_keys`, rows {key, value, rev} instead; `prefix` filters by key.",
  input: z.object({ scope: Scope, with_keys: z.boolean().optional(), prefix: z.string().optional() }),
  output: z.array(z.unknown()),
  effect: "none",
  parallel: true,
});
export const stateListGroups = defineFunction({
  id: "state::list_groups",
  about: "The scopes that hold at least one value, sorted.",
  input: z.object({}),
  output: z.object({ groups: z.array(z.string()) }),
  effect: "none",
  parallel: true,
});

/** Delete is `{scope, key, delete: true}`, an update `{scope, key, ops}`, a set `{scope, key, value}`. */
export const TransactWrite = z.object({
  scope: Scope,
  key: Key,
  value: z.unknown().optional(),
  delete: z.literal(true).optional(),
  ops: z.array(StateOp).optional(),
});
export const TransactEnqueue = z.object({
  queue: z.string().min(1).max(BOUNDS.name),
  function_id: z.string().min(1).max(BOUNDS.name),
  data: z.unknown(),
  delay_ms: z.int().nonnegative().optional(),
  /** While a message with this key waits in or runs from this queue, another one is not added. */
  dedupe_key: z.string().max(1_024).optional(),
  /** Trace context to deliver under, instead of the caller's: a turn's steps stay children of the turn's own span. */
  traceparent: z.string().max(BOUNDS.name).optional(),
  baggage: z.string().max(BOUNDS.baggage).optional(),
});
/** The name of a stream, a group or an item. */
export const StreamPart = z.string().min(1).max(1_024).refine(wellFormed, "must be well-formed Unicode");
export const TransactEvent = z.object({
  stream_name: StreamPart,
  group_id: StreamPart,
  item_id: StreamPart,
  data: z.unknown(),
});
export const TransactInput = z.object({
  checks: z.array(z.object({ scope: Scope, key: Key, rev: z.int().nonnegative() })).default([]),
  writes: z.array(TransactWrite).default([]),
  enqueue: z.array(TransactEnqueue).default([]),
  events: z.array(TransactEvent).default([]),
  /** Drops ephemeral stream items whose id starts with `prefix` (deltas, when their turn has ended). */
  drops: z.array(z.object({ stream_name: z.string(), group_id: z.string(), prefix: z.string() })).default([]),
  publish: z.array(z.object({ topic: z.string().min(1), data: z.unknown() })).default([]),
  /** Settles the queue delivery that the caller is running, in this commit. */
  ack: z.literal(true).optional(),
});
export const stateTransact = defineFunction({
  id: "state::transact",
  about: "Check revisions, then write, enqueue, emit, publish and acknowledge in one durable commit; a failed check changes nothing.",
  input: TransactInput,
  output: z.union([
    z.object({ ok: z.literal(true), revs: z.array(z.int()) }),
    z.object({ ok: z.literal(false), conflict: z.object({ scope: z.string(), key: z.string(), rev: z.int() }) }),
  ]),
});

export const StateTriggerConfig = z.object({
  scope: z.string().optional(),
  key: z.string().optional(),
  condition_function_id: z.string().optional(),
  /** Names a durable consumer: its position survives restarts of the worker and of the engine. */
  durable: z.string().min(1).max(128).optional(),
});
/** What a `state` trigger delivers. `event_id` (scope, key, rev) is the same on every redelivery. */
export const StateEvent = z.object({
  type: z.literal("state"),
  event_type: z.enum(["state:created", "state:updated", "state:deleted"]),
  scope: z.string(),
  key: z.string(),
  old_value: z.unknown(),
  new_value: z.unknown(),
  rev: z.int().optional(),
  event_id: z.string().optional(),
});
export type StateEvent = z.infer<typeof StateEvent>;
