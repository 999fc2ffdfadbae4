// A turn, as everyone outside the orchestrator sees it: its states, its view and its events.
import { z } from "zod";
import { ParkedCall } from "./approval.ts";
import { AgentMessage, AssistantMessage, FunctionResult, FunctionResultMessage } from "./content.ts";
import { AssistantMessageEvent } from "./provider.ts";

export const TurnState = z.enum([
  "provisioning",
  "assistant_streaming",
  "function_execute",
  "function_awaiting_approval",
  "steering_check",
  "stopped",
  "failed",
]);
export type TurnState = z.infer<typeof TurnState>;

/** `remaining_ms`: how long a decision can still be made, as the server counted when it made this view; null = for ever. Count down from it. */
export const AwaitingApproval = ParkedCall.omit({ session_id: true }).extend({
  remaining_ms: z.number().nonnegative().nullable().optional(),
});
export type AwaitingApproval = z.infer<typeof AwaitingApproval>;

/** Why a turn failed, or its last answer did. `retry_after_ms`: how long the vendor asked to wait. */
export const TurnError = z.object({ kind: z.string(), message: z.string(), retry_after_ms: z.number().nonnegative().optional() });
export type TurnError = z.infer<typeof TurnError>;

export const TurnStateView = z.object({
  session_id: z.string(),
  turn_id: z.string(),
  message_id: z.string(),
  state: TurnState,
  turn_count: z.int(),
  max_turns: z.int(),
  awaiting_approval: z.array(AwaitingApproval).optional(),
  error: TurnError.optional(),
  /** Why a stopped turn stopped: `end`, `length`, `aborted`, `error`, `max_turns`, `terminated`. */
  stop_reason: z.string().optional(),
  traceparent: z.string().optional(),
  /** Entries that the transcript refused for good, with the reason; something that says so stands in their place where that was possible. */
  lost_entries: z.array(z.object({ entry_id: z.string(), code: z.string(), message: z.string() })).optional(),
  started_at_ms: z.number(),
  updated_at_ms: z.number(),
});
export type TurnStateView = z.infer<typeof TurnStateView>;

/**
 * One event on stream `agent::events`, group = session id. Deltas travel as deltas: `message_update` carries one
 * AssistantMessageEvent without `partial`; a higher `attempt` tells the page to start that message again; `offset` counts the
 * UTF-16 code units of that block before this delta, so that replay is idempotent.
 */
export const AgentEvent = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("message_update"),
    message_id: z.string(),
    attempt: z.int(),
    block: z.int().optional(),
    offset: z.int().optional(),
    llm_event: AssistantMessageEvent,
  }),
  z.object({
    type: z.literal("message_complete"),
    message_id: z.string(),
    attempt: z.int().optional(),
    message: z.union([AssistantMessage, AgentMessage]),
    body_streamed: z.boolean().optional(),
  }),
  z.object({
    type: z.literal("function_execution_start"),
    function_call_id: z.string(),
    function_id: z.string(),
    args: z.unknown(),
    awaiting_approval: z.boolean().optional(),
  }),
  z.object({
    type: z.literal("function_execution_end"),
    function_call_id: z.string(),
    function_id: z.string(),
    result: FunctionResult,
    is_error: z.boolean(),
    duration_ms: z.number(),
  }),
  z.object({ type: z.literal("turn_end"), message: AssistantMessage.nullable(), function_results: z.array(FunctionResultMessage) }),
  z.object({
    type: z.literal("turn_state_changed"),
    event_type: z.enum(["state:created", "state:updated"]),
    new_value: TurnStateView,
    old_value: TurnStateView.optional(),
  }),
  z.object({ type: z.literal("agent_end"), turn_id: z.string(), messages: z.array(AgentMessage) }),
]);
export type AgentEvent = z.infer<typeof AgentEvent>;

export const AGENT_EVENTS = "agent::events";
export const AGENT_TURN_END = "agent::turn_end";
