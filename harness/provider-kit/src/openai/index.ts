// The Chat Completions protocol as one object: what OpenAI's provider and every compatible server's is made of.
import type { Words } from "../answer/rule.ts";
import { COMMON_IMAGES } from "../request/media.ts";
import type { Failure, Protocol, ProviderSettings } from "../spec.ts";
import { openAiClassify } from "./errors.ts";
import { openAiRequest } from "./request.ts";
import { type OpenAiFold, openAiBegin, openAiFold } from "./wire.ts";

export type { OpenAiFold } from "./wire.ts";

const failed = (kind: Failure["kind"], message: string): Failure => ({ kind, message });
const filtered = (word: string) => failed("permanent", `the provider's content filter stopped the answer (${word})`);
const broke = (word: string) => failed("transient", `the provider broke the answer off (${word})`);

/** End words of this wire and of the servers that speak it with words of their own. */
const WORDS: Words = {
  stop: "end",
  length: "length",
  tool_calls: "function_call",
  function_call: "function_call",
  content_filter: filtered("content_filter"),
  // Mistral
  model_length: "length",
  error: broke("error"),
  // text-generation-inference
  eos_token: "end",
  eos: "end",
  stop_sequence: "end",
  // gateways that pass on the words of Anthropic and Gemini
  end_turn: "end",
  max_tokens: "length",
  tool_use: "function_call",
  STOP: "end",
  MAX_TOKENS: "length",
  SAFETY: filtered("SAFETY"),
  RECITATION: filtered("RECITATION"),
  // Zhipu, DeepSeek, vLLM and SGLang
  sensitive: filtered("sensitive"),
  network_error: broke("network_error"),
  insufficient_system_resource: broke("insufficient_system_resource"),
  abort: broke("abort"),
};

export const openAi: Protocol<OpenAiFold, ProviderSettings> = {
  begin: openAiBegin,
  fold: openAiFold,
  words: WORDS,
  request: openAiRequest,
  classify: openAiClassify,
  takes: { images: COMMON_IMAGES, max_image_bytes: 20 * 1024 * 1024, images_in_results: false, signed_only: () => false },
};
