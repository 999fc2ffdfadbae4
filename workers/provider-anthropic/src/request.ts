// A generate request as an HTTP request to Anthropic's Messages API. Pure.
import type { ContentBlock, FunctionResultMessage } from "@iii/contracts";
import {
  type AssistantTurn,
  argumentsOf,
  type Credential,
  effectiveLevel,
  type HealedRequest,
  type HttpRequest,
  type RequestContext,
  resultText,
  type Turn,
  thinkingBudget,
} from "@iii/provider-kit";
import { z } from "zod";
import type { Config } from "./config.ts";

type Block = Record<string, unknown>;
interface Message {
  readonly role: "user" | "assistant";
  readonly content: Block[];
}

/** Below this a marker costs more than it saves. */
const CACHE_MIN_CHARS = 4096;
const CACHED = { cache_control: { type: "ephemeral" } };
/** Models that think by budget. Newer ones decide for themselves and take an effort instead. */
const BUDGETED = /^claude-(3|(opus|sonnet|haiku)-4(-[015])?(-\d{8})?$)/;
const INTERLEAVED = "interleaved-thinking-2025-05-14";

const Redacted = z.object({ redacted: z.string() });

function visible(block: ContentBlock): Block[] {
  if (block.type === "text") return [{ type: "text", text: block.text }];
  if (block.type === "image") return [{ type: "image", source: { type: "base64", media_type: block.mime, data: block.data } }];
  return [];
}

/** Thinking goes back byte for byte. The doctor has left in only what is this server's. */
function thinking({ text, signature }: ContentBlock & { type: "thinking" }): Block {
  const redacted = Redacted.safeParse(signature);
  if (redacted.success) return { type: "redacted_thinking", data: redacted.data.redacted };
  return { type: "thinking", thinking: text, ...(typeof signature === "string" ? { signature } : {}) };
}

function assistantBlocks(turn: AssistantTurn, name: (id: string) => string): Block[] {
  return turn.content.flatMap((block): Block[] => {
    if (block.type === "thinking") return [thinking(block)];
    if (block.type !== "function_call") return block.type === "text" ? visible(block) : [];
    return [{ type: "tool_use", id: toolId(block.id), name: name(block.function_id), input: toObject(argumentsOf(block)) }];
  });
}

/** Ids from elsewhere may have characters that this wire refuses; the same change is made on calls and results. */
const toolId = (id: string) => id.replace(/[^a-zA-Z0-9_-]/g, "_");
const toObject = (value: unknown) => (typeof value === "object" && value !== null && !Array.isArray(value) ? value : { value });

function resultBlock(result: FunctionResultMessage): Block {
  const images = result.content.filter((block) => block.type === "image").flatMap(visible);
  const text = resultText(result);
  const content = images.length === 0 ? text : [...(text.trim() === "" ? [] : [{ type: "text", text }]), ...images];
  return { type: "tool_result", tool_use_id: toolId(result.function_call_id), content, ...(result.is_error ? { is_error: true } : {}) };
}

function toMessages(turns: readonly Turn[], name: (id: string) => string): Message[] {
  const messages: Message[] = [];
  const add = (role: Message["role"], content: Block[]) => {
    const last = messages.at(-1);
    if (content.length === 0) return;
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content: [...content] });
  };
  for (const turn of turns) {
    if (turn.role === "user") add("user", turn.content.flatMap(visible));
    else {
      add("assistant", assistantBlocks(turn, name));
      add("user", turn.results.map(resultBlock));
    }
  }
  return messages;
}

/** A conversation that continues a call without signed thinking before it may not switch thinking on. */
function mayThink(messages: readonly Message[]): boolean {
  const last = messages.findLast((message) => message.role === "assistant");
  const waiting = messages.at(-1)?.content.some((block) => block["type"] === "tool_result") ?? false;
  return !waiting || last === undefined || (last.content[0]?.["type"] ?? "").toString().endsWith("thinking");
}

const EFFORT = { minimal: "low", low: "low", medium: "medium", high: "high", xhigh: "xhigh" } as const;

function thinkingPart(request: HealedRequest, context: RequestContext<Config>, maxTokens: number): Block {
  const level = effectiveLevel(request.thinking_level, context.model);
  if (level === "off") return {};
  if (!BUDGETED.test(request.model)) return { thinking: { type: "adaptive" }, output_config: { effort: EFFORT[level] } };
  const budget = thinkingBudget(level, context.model, maxTokens);
  return budget === undefined ? {} : { thinking: { type: "enabled", budget_tokens: budget } };
}

function authentication(credential: Credential | undefined): Record<string, string> {
  if (credential === undefined) return {};
  return credential.type === "api_key" ? { "x-api-key": credential.key } : { authorization: `Bearer ${credential.access_token}` };
}

function systemPart(prompt: string | null | undefined, cache: boolean): Block {
  if (prompt === null || prompt === undefined || prompt.trim() === "") return {};
  return cache && prompt.length >= CACHE_MIN_CHARS ? { system: [{ type: "text", text: prompt, ...CACHED }] } : { system: prompt };
}

function toolsPart(request: HealedRequest, context: RequestContext<Config>): Block {
  if (request.tools.length === 0) return {};
  const tools: Block[] = request.tools.map(({ name, description, parameters }) => ({
    name: context.toolName(name),
    description,
    input_schema: parameters,
  }));
  const last = tools.at(-1);
  if (context.config.cache && last !== undefined && JSON.stringify(tools).length >= CACHE_MIN_CHARS) Object.assign(last, CACHED);
  return { tools };
}

/** Marks the end of a long conversation, so that the next round finds all of it cached. */
function markEnd(messages: readonly Message[]): void {
  const block = messages.at(-1)?.content.at(-1);
  const markable = block !== undefined && !String(block["type"]).endsWith("thinking");
  if (markable && JSON.stringify(messages).length >= CACHE_MIN_CHARS) Object.assign(block, CACHED);
}

export function request(generate: HealedRequest, context: RequestContext<Config>): HttpRequest {
  const { config, model, credential, url } = context;
  const wanted = generate.max_output_tokens ?? config.default_max_tokens;
  const max_tokens = Math.min(wanted, model?.max_output_tokens ?? wanted);
  const messages = toMessages(generate.turns, context.toolName);
  const think = mayThink(messages) ? thinkingPart(generate, context, max_tokens) : {};
  if (config.cache) markEnd(messages);
  const budgeted = "thinking" in think && !("output_config" in think);
  return {
    url,
    headers: { "anthropic-version": "2023-06-01", ...(budgeted ? { "anthropic-beta": INTERLEAVED } : {}), ...authentication(credential) },
    body: {
      model: generate.model,
      max_tokens,
      ...systemPart(generate.system_prompt, config.cache),
      messages,
      ...toolsPart(generate, context),
      ...think,
      stream: true,
    },
  };
}
