// What a model call cost, and how to guess its tokens when the vendor could not say.
import type { GenerateRequest, Model, Usage } from "@iii/contracts";

/** Rounded to a billionth of a dollar, so that sums of floats stay readable. */
const round = (usd: number) => Math.round(usd * 1e9) / 1e9;

/** Usage with `cost_usd`. Each token is in exactly one class; a cache class without its own price costs what input costs. */
export function priced(usage: Usage, pricing: Model["pricing"]): Usage {
  if (pricing === undefined) return usage;
  const { input_per_1m, output_per_1m, cache_read_per_1m = input_per_1m, cache_write_per_1m = input_per_1m } = pricing;
  const millionths =
    (usage.input ?? 0) * input_per_1m +
    (usage.output ?? 0) * output_per_1m +
    (usage.cache_read ?? 0) * cache_read_per_1m +
    (usage.cache_write ?? 0) * cache_write_per_1m;
  return { ...usage, cost_usd: round(millionths / 1e6) };
}

const CHARS_PER_TOKEN = 4;

/** Tokens of a text, roughly. */
export const estimateTokens = (chars: number) => Math.ceil(chars / CHARS_PER_TOKEN);

/** Usage of an answer that was cut off: what the vendor reported so far, filled up with estimates and marked as such. */
export function estimatedUsage(reported: Usage, request: GenerateRequest, outputChars: number): Usage {
  const prompt = JSON.stringify([request.system_prompt, request.messages, request.tools]).length;
  return {
    ...reported,
    input: reported.input ?? estimateTokens(prompt),
    output: Math.max(reported.output ?? 0, estimateTokens(outputChars)),
    estimated: true,
  };
}
