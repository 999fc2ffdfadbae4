// session-tree::*: the transcript. Entries form a tree; the active path ends in the active leaf. Schemas and definitions only.
import { AgentMessage } from "@iii/contracts";
import { defineFunction, SessionId } from "@iii/sdk";
import { z } from "zod";

/** An entry's id; also its state key, so its shape is that of a session id. */
export const EntryId = z
  .string()
  .regex(/^[\x21-\x2e\x30-\x7e]{1,256}$/, "an entry id is 1 to 256 printable ASCII characters without spaces and without '/'");

const base = {
  id: EntryId,
  parent_id: z.string().nullable(),
  /** Place in the order of appends; the order of the transcript is the parent chain's. */
  seq: z.int().nonnegative(),
  timestamp: z.number(),
};
/** A stored entry. Other kinds of entry than `message` are kept and never sent to a model. */
export const SessionEntry = z.discriminatedUnion("type", [
  z.object({ ...base, type: z.literal("message"), message: AgentMessage }),
  z.object({
    ...base,
    type: z.literal("custom_message"),
    custom_type: z.string(),
    content: z.unknown(),
    display: z.unknown(),
    details: z.unknown(),
  }),
  z.object({ ...base, type: z.literal("branch_summary"), summary: z.string(), from_id: z.string() }),
  z.object({
    ...base,
    type: z.literal("compaction"),
    summary: z.string(),
    tokens_before: z.number(),
    tail_start_id: z.string().optional(),
    details: z.unknown(),
  }),
]);
export type SessionEntry = z.infer<typeof SessionEntry>;

export const SessionMeta = z.object({
  session_id: SessionId,
  display_name: z.string().optional(),
  cwd: z.string().optional(),
  created_at: z.number(),
  updated_at: z.number(),
  branch_count: z.int().nonnegative(),
  entry_count: z.int().nonnegative(),
  /** The end of the active path; null while the session is empty. */
  leaf_id: z.string().nullable(),
  last_message_summary: z.string().optional(),
});
export type SessionMeta = z.infer<typeof SessionMeta>;

const Labels = { display_name: z.string().max(200).optional(), cwd: z.string().max(4_096).optional() };

export const createSession = defineFunction({
  id: "session-tree::create",
  about: "Create an empty session with a new id.",
  input: z.object(Labels),
  output: z.object({ session_id: SessionId }),
});
export const ensureSession = defineFunction({
  id: "session-tree::ensure",
  about: "Create a session with this id unless it exists.",
  input: z.object({ session_id: SessionId, ...Labels }),
  output: z.object({ session_id: SessionId }),
  effect: "idempotent",
});
/** One message of a transcript. */
export const TranscriptEntry = z.object({ entry_id: z.string(), message: AgentMessage });
export type TranscriptEntry = z.infer<typeof TranscriptEntry>;

/** Whether a session that is not there is created, as `session-tree::ensure` would, in the same commit. Default false. */
const create = z.boolean().optional();

/** The same `entry_id` with the same message answers as the first time; with another message it is `idempotency_conflict`. */
export const appendEntry = defineFunction({
  id: "session-tree::append",
  about: "Append one message below `parent_id`, by default below the active leaf. With `entry_id`, appending twice has one effect.",
  input: z.object({ session_id: SessionId, parent_id: z.string().nullish(), entry_id: EntryId.optional(), message: AgentMessage, create }),
  output: z.object({ entry_id: z.string() }),
});
/** `entry_ids`, when given, names one id per message; entries that are there already are kept. One commit for all. */
export const appendBatch = defineFunction({
  id: "session-tree::append_batch",
  about: "Append messages as one chain in one commit. With `entry_ids`, appending twice has one effect.",
  input: z.object({
    session_id: SessionId,
    parent_id: z.string().nullish(),
    entry_ids: z.array(EntryId).optional(),
    messages: z.array(AgentMessage).max(1_000),
    create,
  }),
  output: z.object({ entry_ids: z.array(z.string()) }),
});
export const sessionMessages = defineFunction({
  id: "session-tree::messages",
  about: "The messages of the active path, or of the path that ends in `branch_leaf`, oldest first. None for an unknown session.",
  input: z.object({ session_id: SessionId, branch_leaf: z.string().optional() }),
  /** `unreadable`: entries of the path that are stored in another shape, left out of `messages`. */
  output: z.object({
    messages: z.array(TranscriptEntry),
    unreadable: z.array(z.object({ entry_id: z.string(), reason: z.string() })).optional(),
  }),
  effect: "none",
  parallel: true,
});

export const SessionRow = SessionMeta.omit({ branch_count: true, leaf_id: true });
export type SessionRow = z.infer<typeof SessionRow>;
export const listSessions = defineFunction({
  id: "session-tree::list",
  about: "Sessions by their last change, newest first unless `order` is asc.",
  input: z.object({
    limit: z.int().positive().max(1_000).optional(),
    offset: z.int().nonnegative().optional(),
    order: z.enum(["asc", "desc"]).optional(),
  }),
  /** `unreadable`: sessions whose row is stored in another shape; they are not counted in `total`. */
  output: z.object({
    sessions: z.array(SessionRow),
    total: z.int(),
    unreadable: z.array(z.object({ session_id: z.string(), reason: z.string() })).optional(),
  }),
  effect: "none",
  parallel: true,
});
