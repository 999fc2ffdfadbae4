// OpenAI's models. Prices are list prices in USD per million tokens; no offer.
import type { Model } from "@iii/contracts";

const common = {
  provider: "openai",
  api: "openai-completions",
  supports_tools: true,
  supports_thinking: true,
  supports_vision: true,
  supports_cache: true,
  transports: ["sse" as const],
};

export const models: readonly Model[] = [
  {
    ...common,
    id: "gpt-5",
    display_name: "GPT-5",
    context_window: 400_000,
    max_output_tokens: 128_000,
    pricing: { input_per_1m: 1.25, output_per_1m: 10, cache_read_per_1m: 0.125 },
  },
  {
    ...common,
    id: "gpt-5-mini",
    display_name: "GPT-5 mini",
    context_window: 400_000,
    max_output_tokens: 128_000,
    pricing: { input_per_1m: 0.25, output_per_1m: 2, cache_read_per_1m: 0.025 },
  },
];
