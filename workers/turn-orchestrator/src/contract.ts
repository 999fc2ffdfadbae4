// What others may import from the turn-orchestrator: starting, stopping and reading a turn. Schemas and definitions only.
import { AgentMessage, ThinkingLevel, TurnStateView } from "@iii/contracts";
import { defineFunction, MessageId, SessionId } from "@iii/sdk";
import { TranscriptEntry } from "@iii/worker-session/contract";
import { z } from "zod";

/** A provider's routing name: the middle of `provider::<name>::stream`. */
export const ProviderName = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, "a provider name is 1 to 64 letters, digits, '_', '.' or '-'");

export const RunMode = z.enum(["plan", "ask", "agent"]);
export type RunMode = z.infer<typeof RunMode>;

export const RunStartPayload = z.object({
  session_id: SessionId,
  /** Names this message; the same id returns the first answer instead of starting a second turn. */
  message_id: MessageId.optional(),
  /** Like `message_id`, for callers that keep their own key. */
  idempotency_key: MessageId.optional(),
  provider: ProviderName,
  model: z.string().min(1).max(256),
  mode: RunMode.nullish(),
  /** The new messages of this turn; they are appended to the session's transcript. */
  messages: z.array(AgentMessage).default([]),
  /** How many model calls the turn may make. Default 50. */
  max_turns: z.int().positive().max(10_000).optional(),
  /** When not empty, used verbatim instead of the built prompt. */
  system_prompt: z.string().default(""),
  thinking_level: ThinkingLevel.optional(),
  max_output_tokens: z.int().positive().optional(),
  /** What to do when the session already runs a turn: wait in line, or answer `session_busy`. */
  if_busy: z.enum(["queue", "reject"]).default("queue"),
});
export type RunStartPayload = z.infer<typeof RunStartPayload>;

/** `started: false` comes with `queued: true` (it runs after the current turn) or with `reason` (nothing was stored). */
export const RunStartResult = z.object({
  session_id: z.string(),
  turn_id: z.string().optional(),
  message_id: z.string().optional(),
  started: z.boolean(),
  queued: z.boolean().optional(),
  deduplicated: z.boolean().optional(),
  reason: z.literal("session_busy").optional(),
});
export type RunStartResult = z.infer<typeof RunStartResult>;

export const runStart = defineFunction({
  id: "run::start",
  about: "Accept a turn: store the messages and the request durably, start it or put it in line, and return at once.",
  input: RunStartPayload,
  output: RunStartResult,
  effect: "idempotent",
});

export const runAbort = defineFunction({
  id: "run::abort",
  about: "Stop the session's turn: the model request and running tools are cancelled before the turn is shown as stopped.",
  input: z.object({ session_id: SessionId, reason: z.string().max(1_000).optional() }),
  output: z.object({ session_id: z.string(), aborted: z.boolean(), state: z.string().nullable() }),
  effect: "idempotent",
});

export const turnGetState = defineFunction({
  id: "turn::get_state",
  about: "The session's current or last turn, with the entries that its transcript does not have yet; null for an unknown session.",
  input: z.object({ session_id: SessionId }),
  /** `pending_entries` stand behind the transcript: read this first and then the transcript, and take each entry id once. */
  output: TurnStateView.extend({ pending_entries: z.array(TranscriptEntry).optional() }).nullable(),
  effect: "none",
  parallel: true,
});

/** What a step did: walked from one state to another, or found nothing to do. */
export const TurnStepResult = z.union([
  z.object({ ok: z.literal(true), from_state: z.string(), to_state: z.string() }),
  z.object({ ok: z.literal(true), skipped: z.literal(true), reason: z.literal("stale") }),
]);
export type TurnStepResult = z.infer<typeof TurnStepResult>;
