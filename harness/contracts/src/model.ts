// A model in the catalogue.
import { z } from "zod";

/** USD per million tokens. */
export const Pricing = z.object({
  input_per_1m: z.number().nonnegative(),
  output_per_1m: z.number().nonnegative(),
  cache_read_per_1m: z.number().nonnegative().optional(),
  cache_write_per_1m: z.number().nonnegative().optional(),
});
export const Model = z.object({
  id: z.string().min(1),
  provider: z.string().min(1),
  api: z.string(),
  display_name: z.string(),
  context_window: z.int().positive(),
  max_output_tokens: z.int().positive().optional(),
  supports_thinking: z.boolean().optional(),
  supports_xhigh: z.boolean().optional(),
  supports_tools: z.boolean().optional(),
  supports_vision: z.boolean().optional(),
  supports_cache: z.boolean().optional(),
  thinking_budgets: z
    .object({ minimal: z.int().optional(), low: z.int().optional(), medium: z.int().optional(), high: z.int().optional() })
    .optional(),
  transports: z.array(z.enum(["sse", "websocket", "auto"])).optional(),
  default_cache_retention: z.enum(["none", "short", "long"]).optional(),
  pricing: Pricing.optional(),
  /** Whether it runs only with a credential of its provider; absent: not known. */
  needs_key: z.boolean().optional(),
  /** Messages that are worth a try with this model, for an empty session. */
  examples: z.array(z.object({ title: z.string(), text: z.string() })).optional(),
});
export type Model = z.infer<typeof Model>;
