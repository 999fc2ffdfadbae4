// What an answer cost: counts as the vendor told them, filled up by estimates where it did not, and the price of each class.
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

/** Later counts replace earlier ones; a 0 never replaces a count: some servers end with a block of zeros. */
export function later(told: Usage, next: Usage): Usage {
  const counts = Object.entries(next).filter(([key, count]) => count !== 0 || !told[key as keyof Usage]);
  return { ...told, ...Object.fromEntries(counts) };
}

/** Tokens of the prompt, in all classes. */
export const promptTokens = ({ input = 0, cache_read = 0, cache_write = 0 }: Usage): number => input + cache_read + cache_write;

const CHARS_PER_TOKEN = 4;
/** A picture costs some 1,500 tokens, however many characters it takes to send. */
const PICTURE_CHARS = 6_000;

const estimateTokens = (chars: number) => Math.ceil(chars / CHARS_PER_TOKEN);

function promptChars({ system_prompt, messages, tools }: GenerateRequest): number {
  const short = (key: string, value: unknown) => (key === "data" && typeof value === "string" ? value.slice(0, PICTURE_CHARS) : value);
  return JSON.stringify([system_prompt, messages, tools], short).length;
}

/** The usage of an answer: what was told; what was not, or told as zero though something was written, is counted here and marked. */
export function completed(told: Usage, request: GenerateRequest, outputChars: number, whole: boolean): Usage {
  const prompt = promptTokens(told) > 0 ? {} : { input: estimateTokens(promptChars(request)) };
  const written = estimateTokens(outputChars);
  // A cut answer's count is the one from before it was written.
  const missing = whole ? (told.output ?? 0) === 0 : true;
  const output = missing ? { output: Math.max(told.output ?? 0, written) } : {};
  const estimated = !whole || prompt.input !== undefined || (missing && written > 0);
  return { ...told, ...prompt, ...output, ...(estimated ? { estimated: true } : {}) };
}
