// Anthropic's stream: the events we read, parsed loosely, and their fold. Usage on this wire is cumulative: replaced, never added.
import type { StopReason, Usage } from "@iii/contracts";
import { type Failure, type FoldEvent, saysOverflow } from "@iii/provider-kit";
import { z } from "zod";

const Tokens = z.object({
  input_tokens: z.number().nullish(),
  output_tokens: z.number().nullish(),
  cache_read_input_tokens: z.number().nullish(),
  cache_creation_input_tokens: z.number().nullish(),
});

const Opening = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string().default("") }),
  z.object({ type: z.literal("thinking"), thinking: z.string().default(""), signature: z.string().default("") }),
  z.object({ type: z.literal("redacted_thinking"), data: z.string() }),
  z.object({ type: z.literal("tool_use"), id: z.string().optional(), name: z.string().optional(), input: z.unknown() }),
]);

const Delta = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text_delta"), text: z.string() }),
  z.object({ type: z.literal("input_json_delta"), partial_json: z.string() }),
  z.object({ type: z.literal("thinking_delta"), thinking: z.string() }),
  z.object({ type: z.literal("signature_delta"), signature: z.string() }),
]);

export const Wire = z.discriminatedUnion("type", [
  z.object({ type: z.literal("message_start"), message: z.object({ usage: Tokens.nullish() }) }),
  z.object({ type: z.literal("content_block_start"), index: z.int(), content_block: Opening }),
  z.object({ type: z.literal("content_block_delta"), index: z.int(), delta: Delta }),
  z.object({ type: z.literal("content_block_stop"), index: z.int() }),
  z.object({ type: z.literal("message_delta"), delta: z.object({ stop_reason: z.string().nullish() }), usage: Tokens.nullish() }),
  z.object({ type: z.literal("message_stop") }),
  z.object({ type: z.literal("ping") }),
  z.object({ type: z.literal("error"), error: z.object({ type: z.string().default("error"), message: z.string().default("") }) }),
]);
type Wire = z.infer<typeof Wire>;

export interface Fold {
  /** The vendor's word for why it stopped, once it said so. */
  readonly stop: string | undefined;
}
export const begin = (): Fold => ({ stop: undefined });

function usageOf(tokens: z.infer<typeof Tokens>): Usage {
  const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } = tokens;
  return {
    ...(input_tokens == null ? {} : { input: input_tokens }),
    ...(output_tokens == null ? {} : { output: output_tokens }),
    ...(cache_read_input_tokens == null ? {} : { cache_read: cache_read_input_tokens }),
    ...(cache_creation_input_tokens == null ? {} : { cache_write: cache_creation_input_tokens }),
  };
}

const usage = (tokens: z.infer<typeof Tokens> | null | undefined): readonly FoldEvent[] =>
  tokens == null ? [] : [{ type: "usage", usage: usageOf(tokens) }];

function opened(block: number, start: z.infer<typeof Opening>): readonly FoldEvent[] {
  switch (start.type) {
    case "text":
      return [{ type: "text", block, delta: start.text }];
    case "thinking":
      return [
        { type: "thinking", block, delta: start.thinking },
        { type: "signature", block, delta: start.signature },
      ];
    case "redacted_thinking":
      return [{ type: "opaque_thinking", block, signature: { redacted: start.data } }];
    case "tool_use":
      return [{ type: "call", block, id: start.id, name: start.name, delta: whole(start.input) }];
  }
}

/** Some gateways send the whole input with the start; the vendor itself sends an empty object there and the text in deltas. */
function whole(input: unknown): string | undefined {
  return typeof input === "object" && input !== null && Object.keys(input).length > 0 ? JSON.stringify(input) : undefined;
}

function grown(block: number, delta: z.infer<typeof Delta>): FoldEvent {
  switch (delta.type) {
    case "text_delta":
      return { type: "text", block, delta: delta.text };
    case "input_json_delta":
      return { type: "call", block, delta: delta.partial_json };
    case "thinking_delta":
      return { type: "thinking", block, delta: delta.thinking };
    case "signature_delta":
      return { type: "signature", block, delta: delta.signature };
  }
}

const STOPS: Readonly<Record<string, StopReason>> = { max_tokens: "length", tool_use: "function_call" };
const FAILURES: Readonly<Record<string, Failure>> = {
  refusal: { kind: "permanent", message: "the model declined to answer (refusal)" },
  model_context_window_exceeded: {
    kind: "context_overflow",
    message: "the conversation no longer fits the model (model_context_window_exceeded)",
  },
};

function ended(stop: string): FoldEvent {
  const failure = FAILURES[stop];
  return failure === undefined ? { type: "end", stop: STOPS[stop] ?? "end" } : { type: "fail", failure };
}

const KINDS: Readonly<Record<string, Failure["kind"]>> = {
  overloaded_error: "transient",
  api_error: "transient",
  timeout_error: "transient",
  rate_limit_error: "rate_limited",
  authentication_error: "auth_expired",
  permission_error: "auth_expired",
  request_too_large: "context_overflow",
};

/** An error by Anthropic's own type, in a stream or in a body. Undefined for a type that says nothing. */
export function failureOf(type: string, message: string): Failure | undefined {
  const kind = saysOverflow(message) ? "context_overflow" : KINDS[type];
  return kind === undefined ? undefined : { kind, message: `${type}: ${message}` };
}

export function fold(state: Fold, event: Wire): readonly [Fold, readonly FoldEvent[]] {
  switch (event.type) {
    case "message_start":
      return [state, usage(event.message.usage)];
    case "content_block_start":
      return [state, opened(event.index, event.content_block)];
    case "content_block_delta":
      return [state, [grown(event.index, event.delta)]];
    case "content_block_stop":
      return [state, [{ type: "close", block: event.index }]];
    case "message_delta":
      return [{ stop: event.delta.stop_reason ?? state.stop }, usage(event.usage)];
    case "message_stop":
      return [state, [ended(state.stop ?? "end_turn")]];
    case "ping":
      return [state, []];
    case "error": {
      const { type, message } = event.error;
      return [state, [{ type: "fail", failure: failureOf(type, message) ?? { kind: "permanent", message: `${type}: ${message}` } }]];
    }
  }
}

/** A stream that closes after its stop reason was complete; before it, it was cut. */
export function finish(state: Fold): readonly FoldEvent[] {
  return state.stop === undefined ? [] : [ended(state.stop)];
}
