// Models of vendors that have no provider worker here yet; providers tell the catalogue about their own.
// Prices are the vendors' list prices in USD per million tokens as far as known, and no offer: `models::register` corrects a row.
import type { Model } from "@iii/contracts";

const tools = { supports_tools: true, transports: ["sse" as const] };
const gemini = { ...tools, provider: "google", api: "google-generative-ai", context_window: 1_048_576, max_output_tokens: 8_192 };
const completions = { ...tools, api: "openai-completions" };
const kimi = { ...completions, provider: "kimi", context_window: 256_000, max_output_tokens: 16_384 };
const all = { supports_thinking: true, supports_vision: true, supports_cache: true };

/** Stands for every model that an LM Studio server has loaded. */
export const LMSTUDIO_PLACEHOLDER: Model = {
  ...completions,
  id: "lmstudio-local",
  provider: "lmstudio",
  display_name: "LM Studio (loaded model)",
  context_window: 32_768,
  max_output_tokens: 8_192,
  pricing: { input_per_1m: 0, output_per_1m: 0 },
};

export const SEED: readonly Model[] = [
  {
    ...gemini,
    ...all,
    id: "gemini-2-5-pro",
    display_name: "Gemini 2.5 Pro",
    pricing: { input_per_1m: 1.25, output_per_1m: 10, cache_read_per_1m: 0.125 },
  },
  {
    ...gemini,
    ...all,
    id: "gemini-2-5-flash",
    display_name: "Gemini 2.5 Flash",
    pricing: { input_per_1m: 0.3, output_per_1m: 2.5, cache_read_per_1m: 0.03 },
  },
  {
    ...completions,
    id: "grok-4",
    provider: "xai",
    display_name: "Grok 4",
    context_window: 256_000,
    max_output_tokens: 16_384,
    supports_thinking: true,
    supports_vision: true,
    pricing: { input_per_1m: 3, output_per_1m: 15, cache_read_per_1m: 0.75 },
  },
  {
    ...completions,
    id: "deepseek-v3",
    provider: "deepseek",
    display_name: "DeepSeek V3",
    context_window: 128_000,
    max_output_tokens: 8_192,
    supports_thinking: true,
    pricing: { input_per_1m: 0.27, output_per_1m: 1.1, cache_read_per_1m: 0.07 },
  },
  {
    ...completions,
    id: "qwen-3-coder",
    provider: "huggingface",
    display_name: "Qwen3 Coder",
    context_window: 256_000,
    max_output_tokens: 8_192,
  },
  {
    ...kimi,
    ...all,
    id: "kimi-k2.6",
    display_name: "Kimi K2.6",
    pricing: { input_per_1m: 0.95, output_per_1m: 4, cache_read_per_1m: 0.16 },
  },
  {
    ...kimi,
    ...all,
    id: "kimi-k2.5",
    display_name: "Kimi K2.5",
    pricing: { input_per_1m: 0.6, output_per_1m: 3, cache_read_per_1m: 0.1 },
  },
  LMSTUDIO_PLACEHOLDER,
];
