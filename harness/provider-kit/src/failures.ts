// Failures by kind, for all vendors: what the vendor calls it, the wordings by which vendors say "the prompt is too long", the status.
import type { ErrorKind, Failure, Headers } from "./spec.ts";

/** Each row: the wording, and a real message that has it. */
const OVERFLOW: readonly (readonly [RegExp, string])[] = [
  [/prompt is too long/i, "prompt is too long: 213462 tokens > 200000 maximum"],
  [
    /exceeds? (?:the |this )?(?:model'?s? )?(?:maximum )?context (?:window|length|limit|size)/i,
    "Your input exceeds the context window of this model",
  ],
  [/exceed context limit/i, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"],
  [/context (?:size|window|length|limit) (?:has been|was|is) exceeded/i, "Context size has been exceeded."],
  [/(?:maximum|max|model'?s) (?:input )?context (?:length|size|window)/i, "This model's maximum context length is 128000 tokens"],
  [/(?:input|prompt) token count.{0,200}exceeds the (?:maximum|limit)/is, "prompt token count of 130000 exceeds the limit of 128000"],
  [/maximum prompt length is/i, "This model's maximum prompt length is 131072 but the request contains 537812 tokens"],
  [/reduce the length of the (?:messages|prompt|input)/i, "Please reduce the length of the messages or completion"],
  [/greater than the context length/i, "The number of tokens to keep from the initial prompt is greater than the context length"],
  [
    /context[_-](?:length[_-]exceeded|window[_-]exceeded|overflow|limit[_-]exceeded|size[_-]exceeded)|exceed_context_size|model_context_window_exceeded/i,
    "context_overflow",
  ],
  [
    /input (?:is )?too (?:long|large)|too many (?:input|prompt) tokens|request too large|too large for model with/i,
    "input is too long for requested model",
  ],
  [/exceeds? the available context size/i, "the request exceeds the available context size"],
  [/exceeds? (?:the )?(?:maximum|max) (?:allowed )?(?:input|prompt) (?:length|tokens)/i, "Input exceeds the maximum allowed input length"],
  [/^400 \(no body\)$/, "400 (no body)"],
];
const RATE = /per minute|per day|rate.?limit|too many requests/i;
const NO_MONEY = /insufficient.?quota|billing|insufficient.?balance|exceeded_current_quota|payment.?required/i;
const NO_MONEY_SAID = /credit balance is too low|insufficient (?:balance|credits?|funds)/i;
/** Refusals that have nothing to do with the key. */
const NOT_THE_KEY =
  /moderation|flagged|content.?(?:policy|filter)|policy.?violation|safety|unsupported.?(?:country|region)|not supported in your (?:country|region)|<html|cloudflare/i;

/** Whether a vendor's text says that the prompt does not fit. A rate limit counted in tokens is not that. */
export function saysOverflow(text: string): boolean {
  return !RATE.test(text) && OVERFLOW.some(([wording]) => wording.test(text));
}

function byStatus(status: number, text: string): ErrorKind {
  if (status === 401) return "auth_expired";
  if (status === 403) return NOT_THE_KEY.test(text) ? "permanent" : "auth_expired";
  if (status === 402 || status === 429) return "rate_limited";
  if (status === 413 || saysOverflow(text)) return "context_overflow";
  if (status === 408 || status === 409 || status === 425 || status >= 500) return "transient";
  return "permanent";
}

/** A failure by its HTTP status; `text` is what the vendor said, already taken out of its envelope. */
export function classifyHttp(status: number, text: string): Failure {
  const said = text.trim() === "" ? `${status} (no body)` : text.trim();
  const money = status === 402 || NO_MONEY_SAID.test(said);
  return { kind: money ? "rate_limited" : byStatus(status, said), message: said, ...(money ? { retry: false } : {}) };
}

/** What a vendor calls a failure, where it says more than the status, or where there is no status. */
const CALLED: readonly (readonly [RegExp, ErrorKind])[] = [
  [/rate_?limit|too_many_requests|resource_exhausted/i, "rate_limited"],
  [/authentication|invalid_api_key|unauthenticated|permission/i, "auth_expired"],
  [/request_too_large/i, "context_overflow"],
  [/overloaded|server_error|api_error|timeout|unavailable/i, "transient"],
  [/invalid_request|not_found|invalid_argument|content_policy|moderation/i, "permanent"],
];

/** A failure by what the vendor calls it (`called`: its type and code), its words, and its status where it has one. */
export function classifyNamed(status: number | undefined, called: string, message: string): Failure {
  const known = status !== undefined && status >= 400 ? status : undefined;
  if (NO_MONEY.test(called) || NO_MONEY_SAID.test(message)) return { kind: "rate_limited", message, retry: false };
  if (known !== 429 && saysOverflow(`${called} ${message}`)) return { kind: "context_overflow", message };
  if (known === 413) return classifyHttp(413, message);
  if (known === 403) return { ...classifyHttp(403, message), kind: byStatus(403, `${called} ${message}`) };
  const kind = CALLED.find(([name]) => name.test(called))?.[1];
  if (known === undefined) return { kind: kind ?? "transient", message };
  return known < 500 && known !== 429 && kind !== undefined && kind !== "permanent" ? { kind, message } : classifyHttp(known, message);
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SPAN = /(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|d|days?)(?![a-z])/gi;

/** How long a vendor's words ask to wait: `try again in 7m12s`, `"retryDelay": "17s"`. */
export function saidWaitMs(text: string): number | undefined {
  const [, words] =
    /(?:retry ?delay"?\s*[:=]\s*"?|(?:try again|retry|wait)[^.\d]{0,20}(?:in|after|for)? )((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*){1,4})/i.exec(
      text,
    ) ?? [];
  const spans = [...(words ?? "").matchAll(SPAN)];
  if (spans.length === 0) return undefined;
  const unit = (word: string) => UNITS[/^(?:ms|milli)/i.test(word) ? "ms" : (word[0] ?? "").toLowerCase()] ?? 0;
  return Math.round(spans.reduce((sum, [, count, word = ""]) => sum + Number(count) * unit(word), 0));
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

const MAX_WORDS = 2_048;

/** A vendor's words for a message: a page of HTML without its tags, and at most 2 KB. */
export function inWords(text: string): string {
  const page = /^\s*</.test(text) && /<(?:!doctype|html|head|body|title|h1|p)\b/i.test(text.slice(0, 4_096));
  const bare = page
    ? text
        .replace(/<(script|style)\b[^>]*>[\s\S]*?<\/\1>/gi, " ")
        .replace(/<[^>]*>/g, " ")
        .replace(/\s+/g, " ")
    : text;
  const short = Buffer.from(bare.trim()).subarray(0, MAX_WORDS);
  return short.length < MAX_WORDS ? bare.trim() : `${new TextDecoder().decode(short).replace(/\ufffd+$/, "")}…`;
}
