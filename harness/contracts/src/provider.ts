// The provider protocol: `provider::<name>::stream` writes AssistantMessageEvents, one JSON text frame each, to a channel.
import { ChannelRef, defineFunction, FunctionId } from "@iii/sdk";
import { z } from "zod";
import { AgentFunction, AgentMessage, AssistantMessage, ErrorKind, StopReason, Usage } from "./content.ts";

export const ThinkingLevel = z.enum(["off", "minimal", "low", "medium", "high", "xhigh"]);

export const GenerateRequest = z.object({
  model: z.string().min(1),
  system_prompt: z.string().nullish(),
  messages: z.array(AgentMessage).default([]),
  tools: z.array(AgentFunction).default([]),
  thinking_level: ThinkingLevel.optional(),
  max_output_tokens: z.int().positive().optional(),
});
export type GenerateRequest = z.infer<typeof GenerateRequest>;
export const StreamRequest = GenerateRequest.extend({ writer_ref: ChannelRef });

const block = z.int().nonnegative().optional();
const partial = AssistantMessage.optional();
/**
 * `block` is the index of the content block that a start, delta or end belongs to (ours; foreign providers may leave it out and
 * send the whole `partial` instead, which we accept and never send). `done` and `error` are terminal; nothing follows them.
 */
export const AssistantMessageEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("start"), partial }),
  z.object({ type: z.enum(["text_start", "thinking_start", "text_end", "thinking_end", "functioncall_end"]), block, partial }),
  z.object({ type: z.literal("functioncall_start"), block, partial, id: z.string().optional(), name: z.string().optional() }),
  z.object({ type: z.enum(["text_delta", "thinking_delta", "functioncall_delta"]), block, delta: z.string(), partial }),
  z.object({ type: z.literal("usage"), usage: Usage }),
  z.object({ type: z.literal("stop"), stop_reason: StopReason, error_message: z.string().nullish(), error_kind: ErrorKind.nullish() }),
  z.object({ type: z.literal("done"), message: AssistantMessage }),
  z.object({ type: z.literal("error"), error: AssistantMessage }),
]);
export type AssistantMessageEvent = z.infer<typeof AssistantMessageEvent>;

export const StreamResponse = z.object({ ok: z.boolean(), status: z.string().optional() });

/** The definition of one provider's stream function. The provider's name is part of the id, so any name works. */
export function providerStream(provider: string) {
  return defineFunction({
    id: FunctionId.parse(`provider::${provider}::stream`),
    about: `Stream one model answer from ${provider} into a channel.`,
    input: StreamRequest,
    output: StreamResponse,
    effect: "none",
    parallel: true,
  });
}

/** The definition of one provider's blocking call: the same stream, drained. */
export function providerComplete(provider: string) {
  return defineFunction({
    id: FunctionId.parse(`provider::${provider}::complete`),
    about: `Get one whole model answer from ${provider}.`,
    input: GenerateRequest,
    output: AssistantMessage,
    effect: "none",
    parallel: true,
  });
}
