// The one place where a conversation is made what a server takes. Nothing is written back: a session that holds what its vendor refuses
// is healed each time it is sent. Pure.
import { type AssistantMessage, type ContentBlock, type FunctionResultMessage, type GenerateRequest, mcpResult } from "@iii/contracts";
import { sendable, type Takes } from "./media.ts";
import { type AssistantTurn, paired, type Turn } from "./pairing.ts";

export type { Takes } from "./media.ts";

/** A request whose turns alternate, say something, and hold only what the server takes. */
export interface HealedRequest extends Omit<GenerateRequest, "messages"> {
  readonly turns: readonly Turn[];
}

export interface Server {
  /** The provider's name and the address it sends to. */
  readonly provider: string;
  readonly url: string;
  readonly takes: Takes;
  /** Whether the model sees. */
  readonly vision: boolean;
}

type Note = (repair: string) => void;

/** Scheme, host and port: whom an answer came from. */
export const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);

const EMPTY = { type: "text", text: "(empty message)" } as const;
const NO_OUTPUT = { type: "text", text: "(no output)" } as const;

const says = (block: ContentBlock): boolean => block.type !== "text" || block.text.trim() !== "";

function visible(content: readonly ContentBlock[], server: Server, note: Note): ContentBlock[] {
  return content.flatMap((block): ContentBlock[] => {
    if (block.type === "text") return says(block) ? [block] : [];
    if (block.type !== "image" && block.type !== "audio") return [];
    const { block: healed, repair } = sendable(block, server.takes, server.vision);
    if (repair !== undefined) note(repair);
    return [healed];
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Sessions from before MCP results were understood hold them as the JSON of the whole, pictures and all. */
function fromMcp(result: FunctionResultMessage): FunctionResultMessage {
  const [only, second] = result.content;
  if (only?.type !== "text" || second !== undefined || !/^\s*\{/.test(only.text)) return result;
  const mcp = mcpResult(result.details) ?? (only.text.includes('"content"') ? mcpResult(parsed(only.text)) : undefined);
  return mcp === undefined ? result : { ...result, content: mcp.content, is_error: result.is_error || mcp.is_error };
}

function healedResult(result: FunctionResultMessage, server: Server, note: Note): FunctionResultMessage {
  const read = fromMcp(result);
  if (read !== result) note("MCP result read");
  const content = visible(read.content, server, note);
  if (content.length > 0) return { ...read, content };
  note("empty result replaced by a text");
  return { ...read, content: [NO_OUTPUT] };
}

/** Whether an answer came from this very server. Answers from before this was noted count by the provider's name. */
const isFrom = (message: AssistantMessage, server: Server): boolean =>
  message.provider === server.provider && (message.vendor === undefined || message.vendor.origin === originOf(server.url));

/** Thinking and what else is the vendor's goes to the server that sent it, and to no other. */
function ownParts(turn: AssistantTurn, server: Server, note: Note): AssistantTurn {
  const own = isFrom(turn.message, server);
  const unsigned = own && turn.message.vendor !== undefined && !server.takes.signed_only(server.url);
  const content = turn.content.flatMap((block): ContentBlock[] => {
    if (block.type === "function_call" && !own && block.extra !== undefined) return [{ ...block, extra: undefined }];
    if (block.type !== "thinking") return [block];
    if (own && (unsigned || block.signature !== undefined)) return [block];
    note("thinking left out");
    return [];
  });
  const { vendor: _, ...bare } = turn.message;
  return { ...turn, content, message: own ? turn.message : bare };
}

function healedAssistant(turn: AssistantTurn, server: Server, note: Note): Turn[] {
  const own = ownParts(turn, server, note);
  const content = own.content
    .flatMap((block) => (block.type === "image" || block.type === "audio" ? visible([block], server, note) : [block]))
    .filter(says);
  // Thinking alone is no message that a server takes.
  if (!content.some((block) => block.type !== "thinking")) return [];
  const results = own.results.map((result) => healedResult(result, server, note));
  if (server.takes.images_in_results) return [{ ...own, content, results }];
  const images = results.flatMap((result) => result.content.filter((block) => block.type === "image"));
  const texts = results.map((result) => withoutImages(result));
  const shown: Turn[] = images.length === 0 ? [] : [{ role: "user", content: images }];
  return [{ ...own, content, results: texts }, ...shown];
}

function withoutImages(result: FunctionResultMessage): FunctionResultMessage {
  if (!result.content.some((block) => block.type === "image")) return result;
  const rest = result.content.filter((block) => block.type !== "image");
  return { ...result, content: rest.length > 0 ? rest : [{ type: "text", text: "(the image follows)" }] };
}

function healedTurn(turn: Turn, server: Server, note: Note): Turn[] {
  if (turn.role === "assistant") return healedAssistant(turn, server, note);
  const content = visible(turn.content, server, note);
  if (content.length > 0) return [{ role: "user", content }];
  note("empty message replaced by a text");
  return [{ role: "user", content: [EMPTY] }];
}

/** Two messages of one role in a row are one: many servers refuse them. */
function joined(turns: readonly Turn[], note: Note): Turn[] {
  const out: Turn[] = [];
  for (const turn of turns) {
    const last = out.at(-1);
    const together = last?.role === turn.role && (last.role === "user" || last.results.length === 0);
    if (!together || last === undefined) {
      out.push(turn);
      continue;
    }
    note("messages of one role joined");
    out[out.length - 1] = { ...turn, content: [...last.content, ...turn.content] };
  }
  return out;
}

/** The request as this server takes it, and what was done to it. */
export function heal(request: GenerateRequest, server: Server): { readonly request: HealedRequest; readonly repairs: readonly string[] } {
  const repairs = new Set<string>();
  const note: Note = (repair) => void repairs.add(repair);
  const { messages, ...rest } = request;
  const turns = paired(messages).flatMap((turn) => healedTurn(turn, server, note));
  return { request: { ...rest, turns: joined(turns, note) }, repairs: [...repairs] };
}
