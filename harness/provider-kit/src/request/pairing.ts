// Makes a transcript sendable: every call has exactly one result, every result has its call, and nothing unfinished is replayed.
import type { AgentMessage, AssistantMessage, ContentBlock, FunctionCallBlock, FunctionResultMessage } from "@iii/contracts";

export interface AssistantTurn {
  readonly role: "assistant";
  readonly message: AssistantMessage;
  readonly content: readonly ContentBlock[];
  /** One per call of `content`, in the order of the calls. */
  readonly results: readonly FunctionResultMessage[];
}
export type Turn = { readonly role: "user"; readonly content: readonly ContentBlock[] } | AssistantTurn;

const isCall = (block: ContentBlock): block is FunctionCallBlock => block.type === "function_call";

function missingResult(call: FunctionCallBlock, timestamp: number): FunctionResultMessage {
  const text = "This call has no recorded result. It may or may not have run.";
  return {
    role: "function_result",
    function_call_id: call.id,
    function_id: call.function_id,
    content: [{ type: "text", text }],
    details: null,
    is_error: true,
    timestamp,
  };
}

/** The latest result of each call, by message and id: a result belongs to the last message before it that uses its id. */
function resultsOf(messages: readonly AgentMessage[]): Map<AgentMessage, Map<string, FunctionResultMessage>> {
  const callers = new Map<string, AgentMessage>();
  const found = new Map<AgentMessage, Map<string, FunctionResultMessage>>();
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const call of message.content.filter(isCall)) callers.set(call.id, message);
      found.set(message, new Map());
    }
    if (message.role !== "function_result") continue;
    const caller = callers.get(message.function_call_id);
    if (caller !== undefined) found.get(caller)?.set(message.function_call_id, message);
  }
  return found;
}

function finished(message: AssistantMessage): ContentBlock[] {
  const unfinished = message.stop_reason === "error" || message.stop_reason === "aborted";
  const seen = new Set<string>();
  return message.content.filter((block) => {
    // Thinking that was cut may lack part of its signature; a call that was cut must not look like one that was made.
    if (unfinished) return block.type === "text" || block.type === "image";
    if (!isCall(block)) return true;
    if (seen.has(block.id)) return false;
    seen.add(block.id);
    return true;
  });
}

/** The conversation as turns. `custom` messages and results without a call are left out; a call without a result gets an error result. */
export function paired(messages: readonly AgentMessage[]): Turn[] {
  const found = resultsOf(messages);
  return messages.flatMap((message): Turn[] => {
    if (message.role === "user") return [{ role: "user", content: message.content }];
    if (message.role !== "assistant") return [];
    const content = finished(message);
    const own = found.get(message);
    const results = content.filter(isCall).map((call) => own?.get(call.id) ?? missingResult(call, message.timestamp));
    return [{ role: "assistant", message, content, results }];
  });
}
