// Anthropic's stream, read field by field, and whole messages. Usage on this wire is cumulative: replaced, never added. Pure.
import type { StopReason, Usage } from "@iii/contracts";
import {
  absent,
  classifyNamed,
  count,
  type Failure,
  type Fields,
  type FoldEvent,
  type Incoming,
  record,
  shown,
  text,
  type Words,
} from "@iii/provider-kit";

type Events = readonly FoldEvent[];
const unknown = (what: string): Events => [{ type: "unknown", what }];

/** Blocks of tools that run at the vendor: nothing in them is for us to run or to show. */
const SKIPPED: ReadonlySet<unknown> = new Set([
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
  "container_upload",
]);

const COUNTS = {
  input: "input_tokens",
  output: "output_tokens",
  cache_read: "cache_read_input_tokens",
  cache_write: "cache_creation_input_tokens",
} as const;

function usageOf(value: unknown): Usage {
  const fields = record(value) ?? {};
  const told = Object.entries(COUNTS).map(([key, name]) => [key, count(fields[name])] as const);
  return Object.fromEntries(told.filter(([, number]) => number !== undefined));
}

function usage(value: unknown): Events {
  const told = usageOf(value);
  return Object.keys(told).length === 0 ? [] : [{ type: "usage", usage: told }];
}

/** Some servers send the whole input with the start; the vendor itself sends an empty object there and the text in deltas. */
function inputOf(input: unknown): string | undefined {
  if (absent(input)) return undefined;
  if (typeof input === "string") return input;
  const fields = record(input);
  return fields !== undefined && Object.keys(fields).length === 0 ? undefined : JSON.stringify(input);
}

const isText = (value: unknown) => value === undefined || value === null || typeof value === "string";

function opened(block: number, start: Fields): Events {
  const { type } = start;
  if (SKIPPED.has(type)) return [{ type: "open", block, kind: "skipped" }];
  if (type === "text" && isText(start["text"])) {
    return [
      { type: "open", block, kind: "text" },
      { type: "text", block, delta: text(start["text"]) ?? "" },
    ];
  }
  if (type === "thinking" && isText(start["thinking"]) && isText(start["signature"])) {
    return [
      { type: "open", block, kind: "thinking" },
      { type: "thinking", block, delta: text(start["thinking"]) ?? "" },
      { type: "signature", block, delta: text(start["signature"]) ?? "" },
    ];
  }
  if (type === "redacted_thinking" && typeof start["data"] === "string") {
    return [
      { type: "open", block, kind: "thinking" },
      { type: "opaque_thinking", block, signature: { redacted: start["data"] } },
    ];
  }
  if (type !== "tool_use" || !isText(start["id"]) || !isText(start["name"])) return unknown(`a block ${shown(start)}`);
  const [id, name] = [text(start["id"]), text(start["name"])];
  return [
    { type: "open", block, kind: "call", id, name },
    { type: "call", block, delta: inputOf(start["input"]) },
  ];
}

function grown(block: number, delta: Fields): Events {
  const { type } = delta;
  const [said, json, thought, signature] = ["text", "partial_json", "thinking", "signature"].map((name) => text(delta[name]));
  if (type === "text_delta" && said !== undefined) return [{ type: "text", block, delta: said }];
  if (type === "input_json_delta" && json !== undefined) return [{ type: "call", block, delta: json }];
  if (type === "thinking_delta" && thought !== undefined) return [{ type: "thinking", block, delta: thought }];
  if (type === "signature_delta" && signature !== undefined) return [{ type: "signature", block, delta: signature }];
  return type === "citations_delta" ? [] : unknown(`a delta ${shown(delta)}`);
}

const failed = (kind: Failure["kind"], message: string): Failure => ({ kind, message });

/** This wire's end words. */
export const words: Words = {
  end_turn: "end" satisfies StopReason,
  stop_sequence: "end",
  pause_turn: "end",
  max_tokens: "length",
  tool_use: "function_call",
  refusal: failed("permanent", "the model declined to answer (refusal)"),
  model_context_window_exceeded: failed("context_overflow", "the conversation no longer fits the model (model_context_window_exceeded)"),
};

function ended(reason: unknown): Events {
  if (absent(reason)) return [];
  return typeof reason === "string" ? [{ type: "end", word: reason }] : unknown(`stop_reason ${shown(reason)}`);
}

/** An error by Anthropic's own type, in a stream or in a body. */
export function failureOf(status: number | undefined, error: unknown): Failure {
  const fields = record(error);
  if (fields === undefined) return classifyNamed(status, "", text(error) ?? shown(error));
  const type = text(fields["type"]) ?? "";
  const message = text(fields["message"]) ?? shown(fields);
  const failure = classifyNamed(status, type, message);
  return { ...failure, message: type === "" ? message : `${type}: ${message}` };
}

/** A whole message, as a server sends it that does not stream. */
function whole(message: Fields): Events {
  const content = message["content"];
  if (!Array.isArray(content)) return unknown(`a message ${shown(message)}`);
  const blocks = content.flatMap((item, index): Events => {
    const block = record(item);
    return block === undefined ? unknown(`a block ${shown(item)}`) : [...opened(index, block), { type: "close", block: index }];
  });
  return [{ type: "begin" }, ...blocks, ...usage(message["usage"]), ...ended(message["stop_reason"]), { type: "closing" }];
}

const started = (message: unknown): Events => {
  // The output that is counted here is the one before anything was written.
  const { output: _, ...told } = usageOf(record(message)?.["usage"]);
  return [{ type: "begin" }, ...(Object.keys(told).length === 0 ? [] : [{ type: "usage", usage: told } as const])];
};

function blockEvent(type: string, event: Fields): Events {
  const { index } = event;
  if (typeof index !== "number") return unknown(shown(event));
  if (type === "content_block_stop") return [{ type: "close", block: index }];
  const start = type === "content_block_start";
  const part = record(event[start ? "content_block" : "delta"]);
  if (part === undefined) return unknown(shown(event));
  return start ? opened(index, part) : grown(index, part);
}

function messageDelta(event: Fields): Events {
  const delta = absent(event["delta"]) ? {} : record(event["delta"]);
  if (delta === undefined) return unknown(shown(event));
  return [...usage(event["usage"] ?? delta["usage"]), ...ended(delta["stop_reason"] ?? event["stop_reason"])];
}

/** No state: each event stands for itself; what belongs together is the rule's. Servers leave the type to the event's name. */
export function fold(state: null, { name, value }: Incoming): readonly [null, Events] {
  const event = record(value);
  const type = text(event?.["type"]) ?? name;
  if (event === undefined) return [state, unknown(shown(value))];
  switch (type) {
    case "message_start":
      return [state, started(event["message"])];
    case "content_block_start":
    case "content_block_delta":
    case "content_block_stop":
      return [state, blockEvent(type, event)];
    case "message_delta":
      return [state, messageDelta(event)];
    case "message_stop":
      return [state, [...usage(event["usage"]), { type: "closing" }]];
    case "message":
      return [state, whole(event)];
    case "ping":
      return [state, []];
    default:
      return [state, absent(event["error"]) ? unknown(shown(event)) : [{ type: "fail", failure: failureOf(undefined, event["error"]) }]];
  }
}
