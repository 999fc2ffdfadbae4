// Call ids of our own, for vendors that repeat or leave out theirs. The same conversation always gives the same ids.
import type { AgentMessage } from "@iii/contracts";
import { CallId } from "@iii/sdk";

/** Every call id that a conversation already uses. */
export function usedCallIds(messages: readonly AgentMessage[]): Set<string> {
  const used = new Set<string>();
  for (const message of messages) {
    if (message.role === "function_result") used.add(message.function_call_id);
    if (message.role !== "assistant") continue;
    for (const block of message.content) if (block.type === "function_call") used.add(block.id);
  }
  return used;
}

/** FNV-1a over UTF-16 code units, in two lanes: short, stable, and not for security. */
function fingerprint(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i += 1) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}

/** Picks ids for the calls of one answer: the vendor's where it is usable and new, else one derived from the conversation. */
export function callIds(messages: readonly AgentMessage[]): (vendorId: string | undefined, block: number) => string {
  const used = usedCallIds(messages);
  let prefix: string | undefined;
  return (vendorId, block) => {
    let id = vendorId ?? "";
    if (!CallId.safeParse(id).success || used.has(id)) {
      prefix ??= `call_${fingerprint(`${messages.length}:${JSON.stringify(messages.at(-1) ?? null)}`)}`;
      id = `${prefix}_${block}`;
      for (let n = 2; used.has(id); n += 1) id = `${prefix}_${block}_${n}`;
    }
    used.add(id);
    return id;
  };
}
