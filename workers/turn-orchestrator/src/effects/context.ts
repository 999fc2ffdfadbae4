// The transcript as a model may see it: every call has its result right behind it, and nothing else is a result. Pure.
import type { AgentMessage, AssistantMessage, FunctionResultMessage } from "@iii/contracts";
import type { PendingEntry } from "../machine/record.ts";

const NO_RESULT = "No result was recorded for this call.";

function usable(message: AgentMessage): boolean {
  if (message.role === "custom") return false;
  if (message.role !== "assistant") return true;
  return message.stop_reason !== "error" && message.stop_reason !== "aborted" && message.content.length > 0;
}

function callIds(message: AssistantMessage): { id: string; function_id: string }[] {
  return message.content.flatMap((block) => (block.type === "function_call" ? [{ id: block.id, function_id: block.function_id }] : []));
}

function missing(call: { id: string; function_id: string }, timestamp: number): FunctionResultMessage {
  const content = [{ type: "text" as const, text: NO_RESULT }];
  return {
    role: "function_result",
    function_call_id: call.id,
    function_id: call.function_id,
    content,
    details: {},
    is_error: true,
    timestamp,
  };
}

/** The results behind the message at `at`, up to the next assistant message; of two for one call the later one counts. */
function resultsBehind(messages: readonly AgentMessage[], at: number): Map<string, FunctionResultMessage> {
  const results = new Map<string, FunctionResultMessage>();
  for (const message of messages.slice(at + 1)) {
    if (message.role === "assistant") break;
    if (message.role === "function_result") results.set(message.function_call_id, message);
  }
  return results;
}

/** The message with each call id once. */
function withoutTwins(message: AssistantMessage): AssistantMessage {
  const seen = new Set<string>();
  const content = message.content.filter((block) => {
    if (block.type !== "function_call") return true;
    if (seen.has(block.id)) return false;
    seen.add(block.id);
    return true;
  });
  return content.length === message.content.length ? message : { ...message, content };
}

/**
 * The messages for a request. Failed and aborted answers, custom messages and results without a call are left out; a call without a
 * result gets one that says so; messages that came between a call and its result go behind the result.
 */
export function modelMessages(messages: readonly AgentMessage[]): AgentMessage[] {
  return messages.flatMap((message, at): AgentMessage[] => {
    if (message.role === "function_result" || !usable(message)) return [];
    if (message.role !== "assistant") return [message];
    const results = resultsBehind(messages, at);
    const once = withoutTwins(message);
    return [once, ...callIds(once).map((call) => results.get(call.id) ?? missing(call, message.timestamp))];
  });
}

/** The stored entries with those that are still on their way behind them, each once. */
export function mergeEntries(stored: readonly PendingEntry[], pending: readonly PendingEntry[]): PendingEntry[] {
  const known = new Set(stored.map((entry) => entry.entry_id));
  return [...stored, ...pending.filter((entry) => !known.has(entry.entry_id))];
}

/** Every call id that the session has used. */
export function usedCallIds(messages: readonly AgentMessage[]): Set<string> {
  return new Set(messages.flatMap((message) => (message.role === "assistant" ? callIds(message).map((call) => call.id) : [])));
}
