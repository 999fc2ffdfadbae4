// The one model of this provider.
import type { Model } from "@iii/contracts";

export const models: readonly Model[] = [
  {
    id: "demo",
    provider: "scripted",
    api: "scripted",
    display_name: "Demo (no key needed)",
    context_window: 1_000_000,
    max_output_tokens: 100_000,
    supports_tools: true,
    supports_thinking: false,
    supports_vision: false,
    supports_cache: false,
    pricing: { input_per_1m: 0, output_per_1m: 0 },
    needs_key: false,
    examples: [
      { title: "Stream an answer", text: "say hello from the bus" },
      { title: "Ask for approval", text: 'call shell::fs::ls {"path":"."}' },
      { title: "Stream slowly", text: "slow 4000 every word of this answer takes its time to arrive" },
      { title: "Fail on purpose", text: "fail rate_limited" },
    ],
  },
];
