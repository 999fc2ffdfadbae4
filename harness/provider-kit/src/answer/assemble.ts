// Builds one assistant message out of fold events and says what to tell the reader. No I/O and no time of its own.
import type { AssistantMessageEvent, ContentBlock, Usage, VendorMark } from "@iii/contracts";
import { wellFormed } from "@iii/contracts/well-formed";
import { isTooDeep, MAX_DEPTH } from "@iii/sdk";
import type { BlockKey, FoldEvent } from "../spec.ts";
import type { Scrubber, ScrubStream } from "./scrub.ts";
import { splitCarry } from "./split-carry.ts";
import { later } from "./usage.ts";

interface Block {
  readonly kind: "text" | "thinking" | "call";
  readonly scrub: ScrubStream;
  text: string;
  /** Half of a surrogate pair, waiting for its other half; of a call without a name, all of its text. */
  carry: string;
  signature: unknown;
  id: string;
  name: string | undefined;
  vendorId: string | undefined;
  extra: unknown;
  problem: string | undefined;
  closed: boolean;
}

export interface Assembly {
  push(event: FoldEvent): AssistantMessageEvent[];
  /** Closes what is still open. Call before `content`. */
  close(): AssistantMessageEvent[];
  /** Calls are left out of an unfinished answer: what was cut may not run. */
  content(complete: boolean): ContentBlock[];
  readonly usage: Usage;
  readonly vendor: Omit<VendorMark, "origin">;
  /** Whether anything was told to the reader. */
  readonly started: boolean;
  /** Characters of output so far. */
  readonly chars: number;
  /** Bytes that the message takes as JSON, at least. */
  readonly bytes: number;
}

export interface AssemblyOptions {
  callId(vendorId: string | undefined, block: number): string;
  decodeName(name: string): string;
  readonly scrubber: Scrubber;
}

const EVENT = { text: "text", thinking: "thinking", call: "functioncall" } as const;
const NO_NAME = "unnamed";
const jsonBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");

/** The arguments of a call out of its text: never guessed, and nothing that could not be stored. */
function argumentsOf(
  { text, problem }: Block,
  scrubber: Scrubber,
): Pick<ContentBlock & { type: "function_call" }, "arguments" | "arguments_text" | "arguments_error"> {
  const arguments_text = text.toWellFormed();
  if (problem !== undefined) return { arguments: null, arguments_text, arguments_error: problem };
  if (text.trim() === "") return { arguments: {} };
  try {
    const value: unknown = JSON.parse(text);
    if (isTooDeep(value))
      return { arguments: null, arguments_text, arguments_error: `the arguments nest more than ${MAX_DEPTH} levels deep` };
    return { arguments: wellFormed(scrubber.value(value)) };
  } catch {
    return { arguments: null, arguments_text };
  }
}

/** The blocks of one answer, by the vendor's keys; their order is that of first appearance. */
class Blocks implements Assembly {
  readonly #options: AssemblyOptions;
  readonly #blocks: Block[] = [];
  readonly #byKey = new Map<string, number>();
  usage: Usage = {};
  vendor: Omit<VendorMark, "origin"> = {};
  chars = 0;
  bytes = 0;
  started = false;

  constructor(options: AssemblyOptions) {
    this.#options = options;
  }

  push(event: FoldEvent): AssistantMessageEvent[] {
    const out = this.#apply(event);
    this.started ||= out.length > 0;
    return out;
  }

  #apply(event: FoldEvent): AssistantMessageEvent[] {
    switch (event.type) {
      case "open":
        return this.#opened(event);
      case "text":
      case "thinking":
        return event.delta === "" ? [] : this.#delta(event.type, event.block, event.delta);
      case "signature":
        if (event.delta === "") return [];
        return this.#sign(
          event.block,
          event.delta,
          (block) => `${typeof block.signature === "string" ? block.signature : ""}${event.delta}`,
        );
      case "opaque_thinking":
        return this.#sign(event.block, event.signature, () => event.signature);
      case "call":
        return this.#call(event);
      case "close":
        return this.#closeBlock(event.block);
      case "usage":
        this.usage = later(this.usage, event.usage);
        return [];
      case "vendor":
        this.#vendor(event);
        return [];
      default:
        return [];
    }
  }

  #vendor({ reasoning, fields }: FoldEvent & { type: "vendor" }): void {
    const known = this.vendor;
    this.vendor = {
      ...known,
      ...(reasoning === undefined ? {} : { reasoning }),
      ...(fields === undefined ? {} : { fields: { ...known.fields, ...fields } }),
    };
  }

  #opened({ block, kind, id, name }: FoldEvent & { type: "open" }): AssistantMessageEvent[] {
    return kind === "call" ? this.#call({ type: "call", block, id, name }) : [];
  }

  /** The block of a key, opened when it is new. A vendor that reuses a key for another kind gets a new block. */
  #open(kind: Block["kind"], key: BlockKey): { index: number; block: Block; fresh: boolean } {
    const mapKey = `${kind}:${key}`;
    const known = this.#byKey.get(mapKey);
    const existing = known === undefined ? undefined : this.#blocks[known];
    if (known !== undefined && existing !== undefined && !existing.closed) return { index: known, block: existing, fresh: false };
    const empty = { text: "", carry: "", signature: undefined, id: "", name: undefined, vendorId: undefined, extra: undefined };
    const block: Block = { kind, scrub: this.#options.scrubber.stream(), ...empty, problem: undefined, closed: false };
    const index = this.#blocks.push(block) - 1;
    this.#byKey.set(mapKey, index);
    return { index, block, fresh: true };
  }

  /** Adds clean text. Told are whole characters only. */
  #append(block: Block, index: number, clean: string): AssistantMessageEvent[] {
    const [whole, carry] = splitCarry(block.carry + clean);
    block.carry = carry;
    if (whole === "") return [];
    const text = whole.toWellFormed();
    block.text += text;
    this.chars += text.length;
    this.bytes += jsonBytes(text);
    return [{ type: `${EVENT[block.kind]}_delta`, block: index, delta: text }];
  }

  #delta(kind: "text" | "thinking", key: BlockKey, delta: string): AssistantMessageEvent[] {
    const { index, block, fresh } = this.#open(kind, key);
    const out = this.#append(block, index, block.scrub.push(delta));
    return fresh ? [{ type: `${kind}_start`, block: index }, ...out] : out;
  }

  #sign(key: BlockKey, added: unknown, signature: (block: Block) => unknown): AssistantMessageEvent[] {
    const { index, block, fresh } = this.#open("thinking", key);
    block.signature = signature(block);
    this.bytes += jsonBytes(added);
    return fresh ? [{ type: "thinking_start", block: index }] : [];
  }

  #call(event: FoldEvent & { type: "call" }): AssistantMessageEvent[] {
    const { index, block } = this.#open("call", event.block);
    block.vendorId ??= event.id;
    block.extra = event.extra ?? block.extra;
    block.problem ??= event.problem;
    const delta = block.scrub.push(event.delta ?? "");
    const named = block.name !== undefined;
    if (!named && event.name !== undefined && event.name !== "") block.name = this.#options.decodeName(event.name);
    if (block.name === undefined) {
      block.carry += delta;
      this.bytes += jsonBytes(delta);
      return [];
    }
    const out = this.#append(block, index, delta);
    return named ? out : [this.#startCall(block, index), ...out];
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
    out.push(...this.#append(block, index, block.scrub.end()));
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
    return this.#blocks.filter((block) => complete || block.kind !== "call").flatMap((block) => this.#contentOf(block));
  }

  #contentOf(block: Block): ContentBlock[] {
    const { kind, text, signature, id, name, extra } = block;
    if (kind === "text") return text === "" ? [] : [{ type: "text", text }];
    if (kind === "thinking") {
      return text === "" && signature === undefined ? [] : [{ type: "thinking", text, ...(signature === undefined ? {} : { signature }) }];
    }
    const given = argumentsOf(block, this.#options.scrubber);
    return [{ type: "function_call", id, function_id: name ?? NO_NAME, ...given, ...(extra === undefined ? {} : { extra }) }];
  }
}

export function newAssembly(options: AssemblyOptions): Assembly {
  return new Blocks(options);
}
