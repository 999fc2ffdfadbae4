// A message while it streams: folds deltas by (attempt, block, offset), so that replaying any of them changes nothing.
import type { AgentEvent } from "@iii/contracts";

export type MessageUpdate = Extract<AgentEvent, { type: "message_update" }>;

export interface LiveBlock {
  readonly type: "text" | "thinking" | "function_call";
  readonly text: string;
  readonly id?: string;
  readonly name?: string;
}

export interface LiveMessage {
  readonly message_id: string;
  readonly attempt: number;
  readonly blocks: readonly LiveBlock[];
  /** A delta before this one never arrived: what is shown has a hole until the snapshot is read again. */
  readonly hole: boolean;
}

/** Applies one update. An older attempt is ignored, a newer one starts the message again. */
export function applyUpdate(live: LiveMessage | undefined, update: MessageUpdate): LiveMessage {
  if (live !== undefined && update.attempt < live.attempt) return live;
  const base =
    live === undefined || update.attempt > live.attempt
      ? { message_id: update.message_id, attempt: update.attempt, blocks: [], hole: false }
      : live;
  return applyEvent(base, update);
}

function applyEvent(live: LiveMessage, update: MessageUpdate): LiveMessage {
  const event = update.llm_event;
  switch (event.type) {
    case "text_start":
      return open(live, at(live, update), { type: "text", text: "" });
    case "thinking_start":
      return open(live, at(live, update), { type: "thinking", text: "" });
    case "functioncall_start":
      return open(live, at(live, update), {
        type: "function_call",
        text: "",
        ...(event.id === undefined ? {} : { id: event.id }),
        ...(event.name === undefined ? {} : { name: event.name }),
      });
    case "text_delta":
      return extend(live, update, "text", event.delta);
    case "thinking_delta":
      return extend(live, update, "thinking", event.delta);
    case "functioncall_delta":
      return extend(live, update, "function_call", event.delta);
    default:
      return live;
  }
}

/** A start names its block or opens the next one; a delta without a block belongs to the last one of its kind. */
function at(live: LiveMessage, update: MessageUpdate): number {
  return update.block ?? live.blocks.length;
}

function open(live: LiveMessage, index: number, block: LiveBlock): LiveMessage {
  const known = live.blocks[index];
  if (known !== undefined && known.type === block.type && known.text !== "") return live;
  return put(live, index, block);
}

function extend(live: LiveMessage, update: MessageUpdate, type: LiveBlock["type"], delta: string): LiveMessage {
  const index = update.block ?? lastOf(live, type);
  const block = live.blocks[index] ?? { type, text: "" };
  const offset = update.offset ?? block.text.length;
  if (offset > block.text.length) return { ...live, hole: true };
  const fresh = delta.slice(block.text.length - offset);
  return fresh === "" ? live : put(live, index, { ...block, type, text: block.text + fresh });
}

function lastOf(live: LiveMessage, type: LiveBlock["type"]): number {
  const index = live.blocks.findLastIndex((block) => block.type === type);
  return index === -1 ? live.blocks.length : index;
}

function put(live: LiveMessage, index: number, block: LiveBlock): LiveMessage {
  const blocks = Array.from(
    { length: Math.max(index + 1, live.blocks.length) },
    (_, i) => live.blocks[i] ?? { type: "text" as const, text: "" },
  );
  blocks[index] = block;
  return { ...live, blocks };
}
