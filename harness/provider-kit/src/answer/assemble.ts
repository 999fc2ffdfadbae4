// Builds one assistant message out of fold events and says what to tell the reader. No I/O and no time of its own.
import type { AssistantMessageEvent, ContentBlock, StopReason, Usage } from "@iii/contracts";
import { wellFormed } from "@iii/contracts/well-formed";
import type { BlockKey, FoldEvent } from "../spec.ts";
import { splitCarry } from "./split-carry.ts";

interface Block {
  readonly kind: "text" | "thinking" | "call";
  text: string;
  /** Half of a surrogate pair, waiting for its other half. */
  carry: string;
  signature: unknown;
  id: string;
  name: string | undefined;
  vendorId: string | undefined;
  closed: boolean;
}

export interface Assembly {
  push(event: FoldEvent): AssistantMessageEvent[];
  /** Closes what is still open. Call before `content`. */
  close(): AssistantMessageEvent[];
  /** Calls are left out of an unfinished answer: what was cut may not run. */
  content(complete: boolean): ContentBlock[];
  readonly usage: Usage;
  readonly hasCalls: boolean;
  /** Whether anything was told to the reader. */
  readonly started: boolean;
  /** Characters of output so far. */
  readonly chars: number;
}

export interface AssemblyOptions {
  callId(vendorId: string | undefined, block: number): string;
  decodeName(name: string): string;
}

const EVENT = { text: "text", thinking: "thinking", call: "functioncall" } as const;
const NO_NAME = "unnamed";

function parseArguments(text: string): { arguments: unknown; arguments_text?: string } {
  if (text.trim() === "") return { arguments: {} };
  try {
    return { arguments: wellFormed(JSON.parse(text)) };
  } catch {
    return { arguments: null, arguments_text: text.toWellFormed() };
  }
}

function toContent(block: Block): ContentBlock[] {
  if (block.kind === "text") return block.text === "" ? [] : [{ type: "text", text: block.text }];
  if (block.kind === "thinking") {
    if (block.text === "" && block.signature === undefined) return [];
    return [{ type: "thinking", text: block.text, ...(block.signature === undefined ? {} : { signature: block.signature }) }];
  }
  return [{ type: "function_call", id: block.id, function_id: block.name ?? NO_NAME, ...parseArguments(block.text) }];
}

/** The blocks of one answer, by the vendor's keys; their order is that of first appearance. */
class Blocks implements Assembly {
  readonly #options: AssemblyOptions;
  readonly #blocks: Block[] = [];
  readonly #byKey = new Map<string, number>();
  usage: Usage = {};
  chars = 0;
  started = false;

  constructor(options: AssemblyOptions) {
    this.#options = options;
  }

  get hasCalls(): boolean {
    return this.#blocks.some((block) => block.kind === "call");
  }

  push(event: FoldEvent): AssistantMessageEvent[] {
    const out = this.#apply(event);
    this.started ||= out.length > 0;
    return out;
  }

  #apply(event: FoldEvent): AssistantMessageEvent[] {
    switch (event.type) {
      case "text":
      case "thinking":
        return event.delta === "" ? [] : this.#delta(event.type, event.block, event.delta);
      case "signature":
        if (event.delta === "") return [];
        return this.#sign(event.block, (block) => `${typeof block.signature === "string" ? block.signature : ""}${event.delta}`);
      case "opaque_thinking":
        return this.#sign(event.block, () => event.signature);
      case "call":
        return this.#call(event);
      case "close":
        return this.#closeBlock(event.block);
      case "usage":
        this.usage = { ...this.usage, ...event.usage };
        return [];
      case "end":
      case "fail":
        return [];
    }
  }

  /** The block of a key, opened when it is new. A vendor that reuses a key for another kind gets a new block. */
  #open(kind: Block["kind"], key: BlockKey): { index: number; block: Block; fresh: boolean } {
    const mapKey = `${kind}:${key}`;
    const known = this.#byKey.get(mapKey);
    const existing = known === undefined ? undefined : this.#blocks[known];
    if (known !== undefined && existing !== undefined && !existing.closed) return { index: known, block: existing, fresh: false };
    const block: Block = { kind, text: "", carry: "", signature: undefined, id: "", name: undefined, vendorId: undefined, closed: false };
    const index = this.#blocks.push(block) - 1;
    this.#byKey.set(mapKey, index);
    return { index, block, fresh: true };
  }

  #append(block: Block, index: number, delta: string): AssistantMessageEvent[] {
    const [whole, carry] = splitCarry(block.carry + delta);
    block.carry = carry;
    if (whole === "") return [];
    const text = whole.toWellFormed();
    block.text += text;
    this.chars += text.length;
    return [{ type: `${EVENT[block.kind]}_delta`, block: index, delta: text }];
  }

  #delta(kind: "text" | "thinking", key: BlockKey, delta: string): AssistantMessageEvent[] {
    const { index, block, fresh } = this.#open(kind, key);
    const out = this.#append(block, index, delta);
    return fresh ? [{ type: `${kind}_start`, block: index }, ...out] : out;
  }

  #sign(key: BlockKey, signature: (block: Block) => unknown): AssistantMessageEvent[] {
    const { index, block, fresh } = this.#open("thinking", key);
    block.signature = signature(block);
    return fresh ? [{ type: "thinking_start", block: index }] : [];
  }

  #call(event: FoldEvent & { type: "call" }): AssistantMessageEvent[] {
    const { index, block } = this.#open("call", event.block);
    block.vendorId ??= event.id;
    const named = block.name !== undefined;
    if (!named && event.name !== undefined && event.name !== "") block.name = this.#options.decodeName(event.name);
    if (block.name === undefined) {
      block.carry += event.delta ?? "";
      return [];
    }
    if (named) return event.delta === undefined ? [] : this.#append(block, index, event.delta);
    return [this.#startCall(block, index), ...this.#append(block, index, event.delta ?? "")];
  }

  #startCall(block: Block, index: number): AssistantMessageEvent {
    block.id = this.#options.callId(block.vendorId, index);
    return { type: "functioncall_start", block: index, id: block.id, name: block.name ?? NO_NAME };
  }

  #closeBlock(key: BlockKey): AssistantMessageEvent[] {
    return (["text", "thinking", "call"] as const).flatMap((kind) => {
      const index = this.#byKey.get(`${kind}:${key}`);
      return index === undefined ? [] : this.#end(index);
    });
  }

  #end(index: number): AssistantMessageEvent[] {
    const block = this.#blocks[index];
    if (block === undefined || block.closed) return [];
    block.closed = true;
    const out: AssistantMessageEvent[] = [];
    if (block.kind === "call" && block.name === undefined) out.push(this.#startCall(block, index));
    if (block.carry !== "") {
      const rest = block.carry.toWellFormed();
      block.carry = "";
      block.text += rest;
      out.push({ type: `${EVENT[block.kind]}_delta`, block: index, delta: rest });
    }
    out.push({ type: `${EVENT[block.kind]}_end`, block: index });
    return out;
  }

  close(): AssistantMessageEvent[] {
    return this.#blocks.flatMap((_, index) => this.#end(index));
  }

  content(complete: boolean): ContentBlock[] {
    return this.#blocks.filter((block) => complete || block.kind !== "call").flatMap(toContent);
  }
}

export function newAssembly(options: AssemblyOptions): Assembly {
  return new Blocks(options);
}

/** The stop reason as the turn needs it: calls decide, whatever word the vendor used; a cut by length stays one. */
export function settleStop(stop: StopReason, hasCalls: boolean): StopReason {
  if (stop === "length") return "length";
  return hasCalls ? "function_call" : "end";
}
