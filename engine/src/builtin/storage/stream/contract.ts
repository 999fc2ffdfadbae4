// stream::*: items under (stream, group, item) that push each change to subscribers, with a sequence number and an epoch per group.
// There is no stream socket and so no `stream:join` or `stream:leave` trigger: pages subscribe by a `stream` trigger on the bus.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";
import { StateOp, StateOpError, StreamPart } from "../state/contract.ts";

const Group = z.object({ stream_name: StreamPart, group_id: StreamPart });
const Item = Group.extend({ item_id: StreamPart });

export const streamSet = defineFunction({
  id: "stream::set",
  about:
    "Store an item and tell subscribers. With `ephemeral`, it lives in the engine's memory only (live deltas) and costs no disk write.",
  input: Item.extend({ data: z.unknown(), ephemeral: z.boolean().optional() }),
  output: z.object({ old_value: z.unknown(), new_value: z.unknown() }),
});
export const streamGet = defineFunction({
  id: "stream::get",
  about: "Read one item.",
  input: Item,
  output: z.unknown(),
  effect: "none",
  parallel: true,
});
export const streamDelete = defineFunction({
  id: "stream::delete",
  about: "Remove one item and tell subscribers if it existed.",
  input: Item,
  output: z.object({ old_value: z.unknown() }),
});
export const streamList = defineFunction({
  id: "stream::list",
  about: "All items of a group.",
  input: Group,
  output: z.array(z.unknown()),
  effect: "none",
  parallel: true,
});
export const streamListGroups = defineFunction({
  id: "stream::list_groups",
  about: "The groups of a stream.",
  input: z.object({ stream_name: z.string().min(1) }),
  output: z.array(z.string()),
  effect: "none",
  parallel: true,
});
export const streamListAll = defineFunction({
  id: "stream::list_all",
  about: "All streams with their groups.",
  input: z.object({}),
  output: z.object({ stream: z.array(z.object({ id: z.string(), groups: z.array(z.string()) })), count: z.int() }),
  effect: "none",
  parallel: true,
});
export const streamUpdate = defineFunction({
  id: "stream::update",
  about: "Apply update operations to one item.",
  input: Item.extend({ ops: z.array(StateOp) }),
  output: z.object({ old_value: z.unknown(), new_value: z.unknown(), errors: z.array(StateOpError).optional() }),
});
export const streamSend = defineFunction({
  id: "stream::send",
  about: "Push an event to subscribers without storing it.",
  input: Group.extend({ id: z.string().optional(), type: z.string(), data: z.unknown() }),
  output: z.null(),
});

/** One entry of a group's history. `item_id` is null for `stream::send` events; a `delete` carries the old data. */
export const StreamEntry = z.object({
  seq: z.int(),
  item_id: z.string().nullable(),
  data: z.unknown(),
  ephemeral: z.boolean(),
  event: z.enum(["create", "update", "delete", "event"]).optional(),
});
/** Our extension. What a subscriber missed after `since`; when that is gone or of another epoch: `gap: true` and the whole group. */
export const streamRead = defineFunction({
  id: "stream::read",
  about: "Read a group's history after a cursor; a lost or foreign cursor gives `gap` and a snapshot.",
  input: Group.extend({ since: z.int().nonnegative().optional(), epoch: z.string().optional() }),
  output: z.object({ epoch: z.string(), seq: z.int(), gap: z.boolean(), items: z.array(StreamEntry) }),
  effect: "none",
  parallel: true,
});

export const StreamTriggerConfig = z.object({
  stream_name: z.string().min(1),
  group_id: z.string().optional(),
  item_id: z.string().optional(),
  condition_function_id: z.string().optional(),
});
/** What a `stream` trigger delivers. `seq` and `epoch` are ours. */
export const StreamEvent = z.object({
  type: z.literal("stream"),
  timestamp: z.number(),
  streamName: z.string(),
  groupId: z.string(),
  id: z.string().nullable(),
  event: z.union([
    z.object({ type: z.enum(["create", "update", "delete"]), data: z.unknown() }),
    z.object({ type: z.literal("event"), event: z.object({ type: z.string(), data: z.unknown() }) }),
  ]),
  seq: z.int().optional(),
  epoch: z.string().optional(),
});
export type StreamEvent = z.infer<typeof StreamEvent>;
