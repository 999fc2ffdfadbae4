// Anthropic's models. Prices are list prices in USD per million tokens (cache writes: 5 minutes); no offer.
import type { Model } from "@iii/contracts";

const common = {
  provider: "anthropic",
  api: "anthropic-messages",
  supports_tools: true,
  supports_thinking: true,
  supports_vision: true,
  supports_cache: true,
  transports: ["sse" as const],
  default_cache_retention: "short" as const,
};

function price(input: number, output: number, read: number): NonNullable<Model["pricing"]> {
  return { input_per_1m: input, output_per_1m: output, cache_read_per_1m: read, cache_write_per_1m: input * 1.25 };
}

export const models: readonly Model[] = [
  {
    ...common,
    id: "claude-opus-5-5",
    display_name: "Claude Opus 5.5",
    context_window: 1_000_000,
    max_output_tokens: 128_000,
    supports_xhigh: true,
    pricing: price(4, 20, 0.2),
  },
  {
    ...common,
    id: "claude-sonnet-5-5",
    display_name: "Claude Sonnet 5.5",
    context_window: 1_000_000,
    max_output_tokens: 128_000,
    pricing: price(2, 10, 0.1),
  },
  {
    ...common,
    id: "claude-opus-4-7",
    display_name: "Claude Opus 4.7",
    context_window: 1_000_000,
    max_output_tokens: 128_000,
    supports_xhigh: true,
    pricing: price(5, 25, 0.5),
  },
  {
    ...common,
    id: "claude-sonnet-4-6",
    display_name: "Claude Sonnet 4.6",
    context_window: 200_000,
    max_output_tokens: 64_000,
    pricing: price(3, 15, 0.3),
  },
  {
    ...common,
    id: "claude-haiku-4-5",
    display_name: "Claude Haiku 4.5",
    context_window: 200_000,
    max_output_tokens: 64_000,
    pricing: price(1, 5, 0.1),
  },
];
