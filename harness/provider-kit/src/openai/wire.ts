// The Chat Completions stream as OpenAI and compatible servers write it, and its fold. Forgiving about what gateways leave out.
import type { StopReason, Usage } from "@iii/contracts";
import { z } from "zod";
import { classifyHttp, saysOverflow } from "../failures.ts";
import type { BlockKey, Failure, FoldEvent, Headers } from "../spec.ts";

const Count = z.number().nullish();
const Tokens = z.object({
  prompt_tokens: Count,
  completion_tokens: Count,
  input_tokens: Count,
  output_tokens: Count,
  prompt_tokens_details: z.object({ cached_tokens: Count, cache_write_tokens: Count }).nullish(),
  input_tokens_details: z.object({ cached_tokens: Count }).nullish(),
});
const CallDelta = z.object({
  index: z.int().nullish(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});
const Choice = z.object({
  delta: z
    .object({
      content: z.string().nullish(),
      refusal: z.string().nullish(),
      reasoning_content: z.string().nullish(),
      reasoning: z.string().nullish(),
      tool_calls: z.array(CallDelta).nullish(),
    })
    .nullish(),
  finish_reason: z.string().nullish(),
});
const ErrorBody = z.object({
  message: z.string().default(""),
  type: z.string().nullish(),
  code: z.union([z.string(), z.number()]).nullish(),
});

/** One chunk. Everything may be missing, but a chunk that has none of these is not one of this wire. */
export const OpenAiWire = z
  .object({ choices: z.array(Choice).nullish(), usage: Tokens.nullish(), error: z.union([ErrorBody, z.string()]).nullish() })
  .refine((chunk) => chunk.choices != null || chunk.usage != null || chunk.error != null, "not a chunk");
type Chunk = z.infer<typeof OpenAiWire>;

interface KnownCall {
  readonly key: BlockKey;
  readonly index: number | undefined;
  readonly id: string | undefined;
}
export interface OpenAiFold {
  readonly calls: readonly KnownCall[];
  readonly finish: string | undefined;
  /** The text or thinking block that is being written. */
  readonly open: BlockKey | undefined;
  /** Whether text or a call came: a closing line without a finish reason is believed only then. */
  readonly output: boolean;
}
export const openAiBegin = (): OpenAiFold => ({ calls: [], finish: undefined, open: undefined, output: false });

/** Cached tokens are part of the prompt count on this wire: they are taken out, so that each token has one class. */
function usageOf(tokens: z.infer<typeof Tokens>): Usage {
  const prompt = tokens.prompt_tokens ?? tokens.input_tokens ?? undefined;
  const output = tokens.completion_tokens ?? tokens.output_tokens ?? undefined;
  const read = tokens.prompt_tokens_details?.cached_tokens ?? tokens.input_tokens_details?.cached_tokens ?? 0;
  const written = tokens.prompt_tokens_details?.cache_write_tokens ?? 0;
  return {
    ...(prompt === undefined ? {} : { input: Math.max(0, prompt - read - written) }),
    ...(output === undefined ? {} : { output }),
    ...(read > 0 ? { cache_read: read } : {}),
    ...(written > 0 ? { cache_write: written } : {}),
  };
}

/** Which call a delta belongs to. The id decides; without one, the index; without both, the newest call. */
function callOf(calls: readonly KnownCall[], delta: z.infer<typeof CallDelta>): KnownCall | undefined {
  const { id, index } = delta;
  if (id != null && id !== "") {
    const sameId = calls.findLast((call) => call.id === id && (index == null || call.index === index));
    if (sameId !== undefined) return sameId;
    // A call that was opened by its index and learns its id now.
    return calls.findLast((call) => call.id === undefined && index != null && call.index === index);
  }
  if (index != null) return calls.findLast((call) => call.index === index);
  const newest = calls.at(-1);
  return delta.function?.name ? undefined : newest;
}

function call(calls: readonly KnownCall[], delta: z.infer<typeof CallDelta>): readonly [readonly KnownCall[], FoldEvent] {
  const known = callOf(calls, delta);
  const id = delta.id ?? known?.id;
  const target: KnownCall = { key: known?.key ?? `call${calls.length}`, index: delta.index ?? known?.index, id };
  const event: FoldEvent = {
    type: "call",
    block: target.key,
    id,
    name: delta.function?.name ?? undefined,
    delta: delta.function?.arguments ?? undefined,
  };
  return [known === undefined ? [...calls, target] : calls.map((one) => (one === known ? target : one)), event];
}

/** Text and thinking take turns: what begins ends the other. */
function writes(open: BlockKey | undefined, key: BlockKey, event: FoldEvent): FoldEvent[] {
  return open === undefined || open === key ? [event] : [{ type: "close", block: open }, event];
}

function choice(state: OpenAiFold, { delta, finish_reason }: z.infer<typeof Choice>): readonly [OpenAiFold, FoldEvent[]] {
  const events: FoldEvent[] = [];
  let { calls, open } = state;
  const write = (type: "text" | "thinking", text: string | null | undefined) => {
    if (!text) return;
    events.push(...writes(open, type, { type, block: type, delta: text }));
    open = type;
  };
  write("thinking", delta?.reasoning_content ?? delta?.reasoning);
  write("text", delta?.content ?? delta?.refusal);
  for (const part of delta?.tool_calls ?? []) {
    const [next, event] = call(calls, part);
    calls = next;
    events.push(...writes(open, "call", event));
    open = undefined;
  }
  const output = state.output || open === "text" || calls.length > 0;
  return [{ calls, finish: finish_reason ?? state.finish, open, output }, events];
}

/** What OpenAI-compatible servers call an error, as a kind. */
export function openAiFailure(status: number, error: z.infer<typeof ErrorBody> | string): Failure {
  const { message, type, code } = typeof error === "string" ? { message: error, type: undefined, code: undefined } : error;
  const word = `${type ?? ""} ${code ?? ""}`;
  if (/insufficient_quota|billing/.test(word)) return { kind: "rate_limited", message: `${status}: ${message}`, retry: false };
  if (saysOverflow(`${word} ${message}`)) return { kind: "context_overflow", message: `${status}: ${message}` };
  const numeric = typeof code === "number" && code >= 400 && code < 600 ? code : undefined;
  if (status === 200) return { ...classifyHttp(numeric ?? statusOf(word), message) };
  return classifyHttp(status, message);
}

function statusOf(word: string): number {
  if (/rate_limit/.test(word)) return 429;
  if (/authentication|invalid_api_key/.test(word)) return 401;
  return /invalid_request/.test(word) ? 400 : 500;
}

export function openAiFold(state: OpenAiFold, chunk: Chunk): readonly [OpenAiFold, readonly FoldEvent[]] {
  if (chunk.error != null) return [state, [{ type: "fail", failure: openAiFailure(200, chunk.error) }]];
  const usage: FoldEvent[] = chunk.usage == null ? [] : [{ type: "usage", usage: usageOf(chunk.usage) }];
  const first = chunk.choices?.[0];
  if (first === undefined) return [state, usage];
  const [next, events] = choice(state, first);
  return [next, [...events, ...usage]];
}

const STOPS: Readonly<Record<string, StopReason>> = { length: "length", tool_calls: "function_call", function_call: "function_call" };
const FILTERED: Failure = { kind: "permanent", message: "the provider's content filter stopped the answer (content_filter)" };

/** The end of the stream: a finish reason makes it complete; the closing line alone does when something was said. */
export function openAiFinish(state: OpenAiFold, sentinel: boolean): readonly FoldEvent[] {
  const { finish } = state;
  if (finish === "content_filter") return [{ type: "fail", failure: FILTERED }];
  if (finish === undefined) return sentinel && state.output ? [{ type: "end", stop: "end" }] : [];
  return [{ type: "end", stop: STOPS[finish] ?? "end" }];
}

const HttpError = z.object({ error: z.union([ErrorBody, z.string()]) });

/** HTTP failures of this family: `{error: {message, type, code}}`, `{error: "text"}`, or plain text. */
export function openAiClassify(status: number, _headers: Headers, body: string): Failure {
  try {
    const parsed = HttpError.safeParse(JSON.parse(body));
    if (parsed.success) return openAiFailure(status, parsed.data.error);
  } catch {
    // Not JSON: the text is the message.
  }
  return classifyHttp(status, body);
}
