// Live deltas of one model message to readers: coalesced, in order, ephemeral. A failure to show is logged and never fails the turn.
import { AGENT_EVENTS, type AgentEvent, type AssistantMessageEvent } from "@iii/contracts";
import { streamSet } from "@iii/engine/contract";
import type { Timer } from "@iii/sdk";
import type { Deps } from "../deps.ts";

const FLUSH_MS = 60;
const FLUSH_CHARS = 4_096;

/** Said again by what comes next: a delta names its block and kind, and `message_complete` has the whole with its usage and stop reason. */
const SILENT: ReadonlySet<AssistantMessageEvent["type"]> = new Set([
  "text_start",
  "thinking_start",
  "text_end",
  "thinking_end",
  "functioncall_end",
  "usage",
  "stop",
]);

type Update = Extract<AgentEvent, { type: "message_update" }>;
type Delta = Extract<AssistantMessageEvent, { type: "text_delta" | "thinking_delta" | "functioncall_delta" }>;

export function isDelta(event: AssistantMessageEvent): event is Delta {
  return event.type === "text_delta" || event.type === "thinking_delta" || event.type === "functioncall_delta";
}

export interface Updates {
  push(event: AssistantMessageEvent): void;
  /** Sends what is held back and resolves when all of it is out. */
  close(): Promise<void>;
}

interface Held {
  readonly event: Delta;
  readonly block: number;
  readonly offset: number;
}

class UpdateSink implements Updates {
  readonly #deps: Deps;
  readonly #target: { session_id: string; message_id: string; attempt: number };
  readonly #offsets = new Map<number, number>();
  #held: Held | undefined;
  #timer: Timer | undefined;
  #flushed_at = Number.NEGATIVE_INFINITY;
  #count = 0;
  #tail: Promise<void> = Promise.resolve();

  constructor(deps: Deps, target: { session_id: string; message_id: string; attempt: number }) {
    this.#deps = deps;
    this.#target = target;
  }

  push(event: AssistantMessageEvent): void {
    if (!isDelta(event)) {
      if (SILENT.has(event.type)) return;
      this.#flush();
      this.#send({ llm_event: withoutPartial(event), ...("block" in event && event.block !== undefined ? { block: event.block } : {}) });
      return;
    }
    const block = event.block ?? lastBlock(event);
    const held = this.#held;
    if (held !== undefined && held.block === block && held.event.type === event.type) {
      this.#held = { ...held, event: { ...held.event, delta: held.event.delta + event.delta } };
    } else {
      this.#flush();
      this.#held = { event: { type: event.type, block, delta: event.delta }, block, offset: this.#offsets.get(block) ?? 0 };
    }
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#flush();
    await this.#tail;
  }

  /** The first delta leaves at once; later ones at a steady pace, or when enough has gathered. */
  #schedule(): void {
    const wait = this.#flushed_at + FLUSH_MS - this.#deps.clock.monotonic();
    if (wait <= 0 || (this.#held?.event.delta.length ?? 0) >= FLUSH_CHARS) this.#flush();
    else this.#timer ??= this.#deps.clock.setTimer(() => this.#flush(), wait);
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#flushed_at = this.#deps.clock.monotonic();
    this.#offsets.set(held.block, held.offset + held.event.delta.length);
    this.#send({ block: held.block, offset: held.offset, llm_event: held.event });
  }

  #send(part: Pick<Update, "block" | "offset" | "llm_event">): void {
    const { session_id, message_id, attempt } = this.#target;
    const item_id = `${message_id}/d/${attempt}.${this.#count}`;
    this.#count += 1;
    const data: Update = { type: "message_update", message_id, attempt, ...part };
    const sent = this.#deps.iii.trigger(streamSet, { stream_name: AGENT_EVENTS, group_id: session_id, item_id, data, ephemeral: true });
    const settled = sent.then(
      () => undefined,
      (err: unknown) => this.#deps.log.warn({ err, item_id }, "a live update could not be shown"),
    );
    this.#tail = this.#tail.then(() => settled);
  }
}

function withoutPartial(event: AssistantMessageEvent): AssistantMessageEvent {
  if (!("partial" in event)) return event;
  const { partial: _, ...rest } = event;
  return rest;
}

/** Foreign providers name no block: a delta then belongs to the last block of the partial they send along. */
function lastBlock(event: Delta): number {
  return Math.max(0, (event.partial?.content.length ?? 1) - 1);
}

export function openUpdates(deps: Deps, target: { session_id: string; message_id: string; attempt: number }): Updates {
  return new UpdateSink(deps, target);
}
