// The transcript as a model may see it: every call has its result right behind it, and nothing else is a result. No I/O.
import { isDeepStrictEqual } from "node:util";
import type { AgentMessage, AssistantMessage, FunctionResultMessage } from "@iii/contracts";
import type { TranscriptEntry } from "@iii/worker-session/contract";

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

type Group = { readonly asks: AssistantMessage; readonly results: Map<string, FunctionResultMessage>; readonly others: AgentMessage[] };

/**
 * The messages for a request, in one pass. Failed and aborted answers, custom messages and results without a call are left out; a call
 * without a result gets one that says so; of two results for one call the later one counts; messages that came between a call and its
 * result go behind the result.
 */
export function modelMessages(messages: readonly AgentMessage[]): AgentMessage[] {
  const sent: AgentMessage[] = [];
  let open: Group | undefined;
  const close = (): void => {
    if (open === undefined) return;
    const { asks, results, others } = open;
    sent.push(asks, ...callIds(asks).map((call) => results.get(call.id) ?? missing(call, asks.timestamp)), ...others);
    open = undefined;
  };
  for (const message of messages) {
    if (message.role === "function_result") open?.results.set(message.function_call_id, message);
    else if (message.role === "assistant") {
      close();
      if (usable(message)) open = { asks: withoutTwins(message), results: new Map(), others: [] };
    } else if (usable(message)) (open?.others ?? sent).push(message);
  }
  close();
  return sent;
}

/** The stored entries with those that are still on their way behind them, each once. An id alone does not make two entries one. */
export function mergeEntries(stored: readonly TranscriptEntry[], pending: readonly TranscriptEntry[]): TranscriptEntry[] {
  const known = new Map(stored.map((entry) => [entry.entry_id, entry]));
  const isNew = (entry: TranscriptEntry): boolean => !isDeepStrictEqual(asStored(known.get(entry.entry_id)), asStored(entry));
  return [...stored, ...pending.filter(isNew)];
}

/** As it comes back from a store: what is undefined is not there. */
function asStored(entry: TranscriptEntry | undefined): unknown {
  return entry === undefined ? undefined : JSON.parse(JSON.stringify(entry));
}

/** Every call id that the session has used. */
export function usedCallIds(messages: readonly AgentMessage[]): Set<string> {
  return new Set(messages.flatMap((message) => (message.role === "assistant" ? callIds(message).map((call) => call.id) : [])));
}
