// HTTP failures by kind, for all vendors: status first, then the wordings by which vendors say "the prompt is too long".
import type { ErrorKind, Failure, Headers } from "./spec.ts";

/** Each row: the wording, and a real message that has it. */
const OVERFLOW: readonly (readonly [RegExp, string])[] = [
  [/prompt is too long/i, "prompt is too long: 213462 tokens > 200000 maximum"],
  [/exceeds? the (?:model's )?(?:maximum )?context (?:window|length)/i, "Your input exceeds the context window of this model"],
  [/maximum context length/i, "This model's maximum context length is 128000 tokens"],
  [/input token count.{0,200}exceeds the maximum/is, "The input token count (1048577) exceeds the maximum number of tokens allowed"],
  [/maximum prompt length is/i, "This model's maximum prompt length is 131072 but the request contains 537812 tokens"],
  [/reduce the length of the messages/i, "Please reduce the length of the messages or completion"],
  [/context_length_exceeded|model_context_window_exceeded/, "context_length_exceeded"],
  [/input (?:is )?too (?:long|large)|request too large|too large for model with/i, "input is too long for requested model"],
  [/exceeds? the available context size/i, "the request exceeds the available context size"],
  [/^400 \(no body\)$/, "400 (no body)"],
];
const RATE = /per minute|per day|rate.?limit|too many requests/i;

/** Whether a vendor's text says that the prompt does not fit. A rate limit counted in tokens is not that. */
export function saysOverflow(text: string): boolean {
  return !RATE.test(text) && OVERFLOW.some(([wording]) => wording.test(text));
}

function kindOf(status: number, text: string): ErrorKind {
  if (status === 401 || status === 403) return "auth_expired";
  if (status === 429) return "rate_limited";
  if (status === 413 || saysOverflow(text)) return "context_overflow";
  if (status === 408 || status === 409 || status === 425 || status >= 500) return "transient";
  return "permanent";
}

/** The common classification; `text` is what the vendor said, already taken out of its envelope. */
export function classifyHttp(status: number, text: string): Failure {
  const said = text.trim() === "" ? `${status} (no body)` : text.trim();
  return { kind: kindOf(status, said), message: said === `${status} (no body)` ? said : `${status}: ${said}` };
}

/** How long the vendor asks us to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const ms = Number(headers["retry-after-ms"]);
  if (headers["retry-after-ms"] !== undefined && Number.isFinite(ms) && ms >= 0) return ms;
  const value = headers["retry-after"];
  if (value === undefined) return undefined;
  const seconds = Number(value);
  if (value.trim() !== "" && Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
