// Token counts of this wire, wherever a server puts them and whatever it counts in. Pure.
import type { Usage } from "@iii/contracts";
import { count, type Fields, record } from "../read.ts";

/** The counts as they were told so far, before they are put into classes. */
export interface Counts {
  readonly prompt?: number;
  readonly output?: number;
  readonly read?: number;
  readonly written?: number;
  readonly total?: number;
}

const first = (...values: unknown[]): number | undefined => values.map(count).find((value) => value !== undefined);

function countsOf(usage: Fields): Counts {
  const prompt = record(usage["prompt_tokens_details"]) ?? record(usage["input_tokens_details"]) ?? {};
  const told = {
    prompt: first(usage["prompt_tokens"], usage["input_tokens"]),
    output: first(usage["completion_tokens"], usage["output_tokens"]),
    read: first(prompt["cached_tokens"], usage["prompt_cache_hit_tokens"], usage["cache_read_input_tokens"], usage["cached_tokens"]),
    written: first(prompt["cache_write_tokens"], prompt["cache_creation_tokens"], usage["cache_creation_input_tokens"]),
    total: first(usage["total_tokens"]),
  };
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
}

/** A 0 never replaces a count. Merged before they become classes: a later report without its cache part must not count it as input again. */
function merged(known: Counts, next: Counts): Counts {
  const kept = Object.entries(next).filter(([key, value]) => value !== 0 || !known[key as keyof Counts]);
  return { ...known, ...Object.fromEntries(kept) };
}

/** The counts with those of one more place; as they were when it has none. */
export function counted(known: Counts, ...places: readonly unknown[]): Counts {
  return places.reduce<Counts>((counts, place) => {
    const usage = record(place);
    return usage === undefined ? counts : merged(counts, countsOf(usage));
  }, known);
}

/**
 * Each token in one class. Cached tokens are part of the prompt count on this wire and are taken out; some gateways leave them out
 * already, which shows in the sum. Some servers leave thinking out of the output, which shows there too.
 */
export function usageOf({ prompt, output, read = 0, written = 0, total }: Counts): Usage {
  const cached = read + written;
  const apart = prompt !== undefined && cached > 0 && (cached > prompt || total === prompt + (output ?? 0) + cached);
  const inclusive = prompt === undefined ? 0 : apart ? prompt + cached : prompt;
  const unseen = total !== undefined && prompt !== undefined && output !== undefined ? Math.max(0, total - inclusive - output) : 0;
  return {
    ...(prompt === undefined ? {} : { input: inclusive - cached }),
    ...(output === undefined ? {} : { output: output + unseen }),
    ...(read > 0 ? { cache_read: read } : {}),
    ...(written > 0 ? { cache_write: written } : {}),
  };
}
