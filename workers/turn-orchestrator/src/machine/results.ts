// Results of calls: what a function's answer becomes for the model, and the results that stand in when there was no answer. Pure.
import { ContentBlock, type DenialEnvelope, type FunctionResult } from "@iii/contracts";
import { bytesOf, CONTENT_DEPTH } from "@iii/contracts/storable";
import { wellFormed } from "@iii/contracts/well-formed";
import { isSecretKey, isTooDeep, MAX_DEPTH } from "@iii/sdk";
import { z } from "zod";

/** A result over this many UTF-8 bytes of JSON is cut; the whole is kept under a handle. */
export const RESULT_LIMIT = 256 * 1024;
/** What the results of one batch may come to: they stand in one record until the batch is whole, each with its data beside its text. */
const BATCH_LIMIT = 4 * 1024 * 1024;
/** A whole over this is not kept: one commit must hold what several calls of a batch leave. */
const KEEP_LIMIT = 4 * 1024 * 1024;
const EXCERPT_CHARS = 256;
const EXCERPT_DEPTH = 64;

/** How much of one result is kept in a batch of so many calls. */
export function resultLimit(calls: number): number {
  return Math.min(RESULT_LIMIT, Math.floor(BATCH_LIMIT / Math.max(1, calls)));
}

export interface Settled {
  readonly result: FunctionResult;
  readonly is_error: boolean;
}

export function textResult(text: string, details: unknown = {}): FunctionResult {
  return { content: [{ type: "text", text }], details };
}

/** An error the model can read: `details.error` names it, the text says what to do. */
export function errorResult(error: string, message: string, extra: Record<string, unknown> = {}): Settled {
  const details = { error, message, ...extra };
  return { result: textResult(JSON.stringify(details), details), is_error: true };
}

export const interrupted = (function_id: string): Settled =>
  errorResult(
    "outcome_unknown",
    "interrupted, outcome unknown: the call was started and its process ended before a result was stored; it was not run again",
    {
      function: function_id,
    },
  );

export const argsChanged = (function_id: string): Settled =>
  errorResult("args_changed", "refused: the arguments are not the ones that were shown for approval; nothing was run", {
    function: function_id,
  });

export const abortedResult = (function_id: string, reason: string): Settled => ({
  result: { ...textResult(`Function call aborted: ${reason}`, { error: "aborted", function: function_id, reason }), terminate: true },
  is_error: true,
});

function excerptString(text: string): string {
  const points = [...text.slice(0, EXCERPT_CHARS * 2)];
  return points.length > EXCERPT_CHARS || text.length > EXCERPT_CHARS * 2 ? `${points.slice(0, EXCERPT_CHARS).join("")}…` : text;
}

/** A copy of arguments for people: secrets by key name hidden, strings clipped, depth limited. */
export function excerpt(value: unknown, depth = 0): unknown {
  if (depth > EXCERPT_DEPTH) return "<too deep>";
  if (typeof value === "string") return excerptString(value);
  if (Array.isArray(value)) return value.map((item) => excerpt(item, depth + 1));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, isSecretKey(key) ? "<redacted>" : excerpt(inner, depth + 1)]);
  return Object.fromEntries(entries);
}

/** A refusal as a result: its text is the reason unless one is given, its details the envelope. */
export function denied(envelope: Omit<DenialEnvelope, "schema_version" | "status">, args?: unknown, text = envelope.reason ?? ""): Settled {
  const details: DenialEnvelope = {
    schema_version: 1,
    status: "denied",
    ...envelope,
    ...(args === undefined ? {} : { args_excerpt: excerpt(args) }),
  };
  return { result: { ...textResult(text, details), terminate: false }, is_error: true };
}

/** The blocks of other tool protocols, as ours. A block of a kind that is not known here stays as its JSON. */
const ForeignBlock = z.union([
  ContentBlock,
  z.object({ type: z.literal("image"), mimeType: z.string(), data: z.string() }),
  z.looseObject({ type: z.enum(["audio", "resource", "resource_link"]) }),
]);

function asBlock(block: z.infer<typeof ForeignBlock>): ContentBlock {
  if ("mimeType" in block && block.type === "image") return { type: "image", mime: String(block.mimeType), data: String(block.data) };
  const own = ContentBlock.safeParse(block);
  return own.success ? own.data : { type: "text", text: JSON.stringify(block) };
}

function asFunctionResult(value: unknown): Settled | undefined {
  if (typeof value !== "object" || value === null || !("content" in value) || !Array.isArray(value.content)) return undefined;
  const content = ForeignBlock.array().safeParse(value.content);
  if (!content.success) return undefined;
  const { details = {}, terminate, is_error, isError } = value as Record<string, unknown>;
  const result: FunctionResult = { content: content.data.map(asBlock), details, ...(terminate === true ? { terminate: true } : {}) };
  return { result, is_error: is_error === true || isError === true };
}

const NO_OUTPUT = "(done, no output)";

/**
 * A function's answer as a result. Only an explicit `is_error: true` (or `isError`) beside `content` makes it an error: a field named
 * `error` in the function's own data does not. An empty answer says so, so that it is not taken for a missing one. An answer that nests
 * too deep to be stored as data is kept as its text.
 */
export function decodeAnswer(answer: unknown): Settled {
  if (isTooDeep(answer))
    return errorResult("payload_too_deep", `the call ran; its result nests more than ${MAX_DEPTH} levels deep and is not kept`);
  const value = wellFormed(answer);
  if (isTooDeep(value, CONTENT_DEPTH))
    return { result: textResult(JSON.stringify(value), { nested_too_deep_for_details: true }), is_error: false };
  const shaped = asFunctionResult(value);
  if (shaped !== undefined) {
    const empty = shaped.result.content.every((block) => block.type === "text" && block.text === "");
    return empty ? { ...shaped, result: { ...shaped.result, content: [{ type: "text", text: NO_OUTPUT }] } } : shaped;
  }
  if (value === undefined || value === null || value === "") return { result: textResult(NO_OUTPUT, value ?? null), is_error: false };
  if (typeof value === "string") return { result: textResult(value), is_error: false };
  return { result: textResult(JSON.stringify(value), value), is_error: false };
}

/** Cuts at a character boundary, so that no half of a surrogate pair is left. */
export function cut(text: string, chars: number): string {
  const head = text.slice(0, chars);
  return /[\ud800-\udbff]$/.test(head) ? head.slice(0, -1) : head;
}

/** The result that goes to the model and, when it had to be cut, the whole to keep under `handle`. */
export function capResult(
  settled: Settled,
  handle: { scope: string; key: string },
  limit: number = RESULT_LIMIT,
  mayKeep = true,
): Settled & { whole?: FunctionResult } {
  // Plain data stands in both: counted apart, so that the limit means the same for every shape of answer.
  const size = Math.max(bytesOf(settled.result.content), bytesOf(settled.result.details));
  if (size <= limit) return settled;
  const text = settled.result.content.map((block) => (block.type === "text" ? block.text : JSON.stringify(block))).join("\n");
  const kept = cut(text, limit / 4);
  const keeps = mayKeep && bytesOf(settled.result) <= KEEP_LIMIT;
  const rest = keeps ? `the whole result is kept under scope '${handle.scope}', key '${handle.key}'` : "the whole was too large to keep";
  const result: FunctionResult = {
    content: [{ type: "text", text: `${kept}\n[cut: ${size} bytes in all; ${rest}]` }],
    details: { truncated: true, size, ...(keeps ? { handle } : {}) },
    ...(settled.result.terminate === true ? { terminate: true } : {}),
  };
  return { result, is_error: settled.is_error, ...(keeps ? { whole: settled.result } : {}) };
}
