// Content blocks and messages of the agent domain: what a transcript is made of.
import { z } from "zod";

export const TextBlock = z.object({ type: z.literal("text"), text: z.string() });
export const ImageBlock = z.object({ type: z.literal("image"), mime: z.string(), data: z.string() });
/** No model of ours takes sound yet: a provider sends a text in its place. */
export const AudioBlock = z.object({ type: z.literal("audio"), mime: z.string(), data: z.string() });
/** `signature` is the vendor's and goes back byte for byte. */
export const ThinkingBlock = z.object({ type: z.literal("thinking"), text: z.string(), signature: z.unknown().optional() });
/**
 * `arguments` is null when what the model wrote cannot be used; `arguments_text` then holds it, and `arguments_error` says why where
 * it is not plain bad JSON. `extra` is the vendor's and goes back with the call, to the server that sent it (`AssistantMessage.vendor`).
 */
export const FunctionCallBlock = z.object({
  type: z.literal("function_call"),
  id: z.string(),
  function_id: z.string(),
  arguments: z.unknown(),
  arguments_text: z.string().optional(),
  arguments_error: z.string().optional(),
  extra: z.unknown().optional(),
});
export const ContentBlock = z.discriminatedUnion("type", [TextBlock, ImageBlock, AudioBlock, ThinkingBlock, FunctionCallBlock]);
export type ContentBlock = z.infer<typeof ContentBlock>;
export type FunctionCallBlock = z.infer<typeof FunctionCallBlock>;

/** `function_call` also when text came along. `aborted` and `error` messages stay in the transcript with their mark. */
export const StopReason = z.enum(["end", "length", "function_call", "aborted", "error"]);
export type StopReason = z.infer<typeof StopReason>;

export const ErrorKind = z.enum(["auth_expired", "rate_limited", "context_overflow", "transient", "permanent"]);
export type ErrorKind = z.infer<typeof ErrorKind>;

/** Tokens. `input` never includes cached tokens, whatever the vendor's convention. `cost_usd` is priced with the catalogue. */
export const Usage = z.object({
  input: z.number().nonnegative().optional(),
  output: z.number().nonnegative().optional(),
  cache_read: z.number().nonnegative().optional(),
  cache_write: z.number().nonnegative().optional(),
  cost_usd: z.number().nonnegative().optional(),
  /** True when the vendor told no count, or not all of them, and we counted. */
  estimated: z.boolean().optional(),
});
export type Usage = z.infer<typeof Usage>;

/**
 * Whom an answer came from, and what that server wants back with it. `origin` is scheme, host and port; nothing here goes to another
 * origin. `reasoning` names the field in which thinking came; `fields` are whole fields of the vendor's message.
 */
export const VendorMark = z.object({
  origin: z.string(),
  reasoning: z.string().optional(),
  fields: z.record(z.string(), z.unknown()).optional(),
});
export type VendorMark = z.infer<typeof VendorMark>;

export const UserMessage = z.object({ role: z.literal("user"), content: z.array(ContentBlock), timestamp: z.number() });
export const AssistantMessage = z.object({
  role: z.literal("assistant"),
  content: z.array(ContentBlock),
  stop_reason: StopReason,
  error_message: z.string().nullish(),
  error_kind: ErrorKind.nullish(),
  /** How long the vendor asked to wait before the next request, in ms. The provider kit has done all retries there are. */
  retry_after_ms: z.number().nonnegative().nullish(),
  usage: Usage.nullish(),
  vendor: VendorMark.optional(),
  model: z.string(),
  provider: z.string(),
  timestamp: z.number(),
});
export type AssistantMessage = z.infer<typeof AssistantMessage>;
export const FunctionResultMessage = z.object({
  role: z.literal("function_result"),
  function_call_id: z.string(),
  function_id: z.string(),
  content: z.array(ContentBlock),
  details: z.unknown(),
  is_error: z.boolean(),
  timestamp: z.number(),
});
export type FunctionResultMessage = z.infer<typeof FunctionResultMessage>;
/** Never sent to a model. */
export const CustomMessage = z.object({
  role: z.literal("custom"),
  custom_type: z.string(),
  content: z.unknown(),
  display: z.unknown().optional(),
  details: z.unknown().optional(),
  timestamp: z.number(),
});
export const AgentMessage = z.discriminatedUnion("role", [UserMessage, AssistantMessage, FunctionResultMessage, CustomMessage]);
export type AgentMessage = z.infer<typeof AgentMessage>;

/** What a called function gives back to the model. */
export const FunctionResult = z.object({ content: z.array(ContentBlock), details: z.unknown(), terminate: z.boolean().optional() });
export type FunctionResult = z.infer<typeof FunctionResult>;

/** A tool as a provider gets it. */
export const AgentFunction = z.object({
  name: z.string(),
  description: z.string(),
  parameters: z.unknown(),
  label: z.string().optional(),
  execution_mode: z.enum(["parallel", "sequential"]).optional(),
  prepare_arguments_supported: z.boolean().optional(),
});
export type AgentFunction = z.infer<typeof AgentFunction>;
