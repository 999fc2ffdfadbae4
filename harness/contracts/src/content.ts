// Content blocks and messages of the agent domain: what a transcript is made of.
import { z } from "zod";

export const TextBlock = z.object({ type: z.literal("text"), text: z.string() });
export const ImageBlock = z.object({ type: z.literal("image"), mime: z.string(), data: z.string() });
/** `signature` is the vendor's and goes back byte for byte. */
export const ThinkingBlock = z.object({ type: z.literal("thinking"), text: z.string(), signature: z.unknown().optional() });
/** `arguments` is null when the model's JSON did not parse; `arguments_text` then holds what it wrote. */
export const FunctionCallBlock = z.object({
  type: z.literal("function_call"),
  id: z.string(),
  function_id: z.string(),
  arguments: z.unknown(),
  arguments_text: z.string().optional(),
});
export const ContentBlock = z.discriminatedUnion("type", [TextBlock, ImageBlock, ThinkingBlock, FunctionCallBlock]);
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
  /** True when the answer was cut off before the vendor reported, and tokens were counted by us. */
  estimated: z.boolean().optional(),
});
export type Usage = z.infer<typeof Usage>;

export const UserMessage = z.object({ role: z.literal("user"), content: z.array(ContentBlock), timestamp: z.number() });
export const AssistantMessage = z.object({
  role: z.literal("assistant"),
  content: z.array(ContentBlock),
  stop_reason: StopReason,
  error_message: z.string().nullish(),
  error_kind: ErrorKind.nullish(),
  usage: Usage.nullish(),
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
