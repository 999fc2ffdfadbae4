// What stands in a transcript for a message that was refused for good: the same place in the conversation, and why it is empty. Pure.
import type { AgentMessage } from "@iii/contracts";

export function replacement(message: AgentMessage, code: string): AgentMessage {
  const text = `This message could not be stored (${code}).`;
  const content = [{ type: "text" as const, text }];
  switch (message.role) {
    case "user":
      return { ...message, content };
    case "function_result":
      return { ...message, content, details: { error: "not_stored", code }, is_error: true };
    case "assistant":
      return { ...message, content, stop_reason: "error", error_kind: "permanent", error_message: text };
    case "custom":
      return { role: "custom", custom_type: message.custom_type.slice(0, 100), content: text, timestamp: message.timestamp };
  }
}
