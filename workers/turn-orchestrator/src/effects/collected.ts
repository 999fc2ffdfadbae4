// What has come of an answer so far: its text, and what it is thought to cost should it not come to its end.
import type { AssistantMessage, AssistantMessageEvent, Usage } from "@iii/contracts";
import { bytesOf } from "@iii/contracts/storable";
import { cut } from "../machine/results.ts";
import { isDelta } from "./updates.ts";

/** Tokens are counted as so many bytes where nobody said how many there were. */
const BYTES_PER_TOKEN = 4;
/** So much of the text of an answer that broke off is kept. */
const KEPT_CHARS = 256 * 1024;

export class Collected {
  readonly #blocks = new Map<number, { type: "text" | "thinking"; text: string }>();
  #told: Usage | undefined;
  #bytes = 0;
  /** Something of the answer was shown. */
  streamed = false;
  /** The answer costs something, as far as is known. */
  cost = false;

  add(event: AssistantMessageEvent): void {
    if (event.type === "usage") this.#told = { ...this.#told, ...event.usage };
    if (!isDelta(event)) return;
    this.streamed = true;
    this.cost = true;
    this.#bytes += Buffer.byteLength(event.delta);
    // Calls are left out: one that was cut must not run.
    if (event.type === "functioncall_delta") return;
    const block = event.block ?? 0;
    const type = event.type === "text_delta" ? ("text" as const) : ("thinking" as const);
    const known = this.#blocks.get(block);
    if (known?.type === type) known.text += event.delta;
    else this.#blocks.set(block, { type, text: event.delta });
  }

  content(): AssistantMessage["content"] {
    const blocks = [...this.#blocks.entries()].toSorted(([a], [b]) => a - b);
    return blocks
      .filter(([, block]) => block.text !== "")
      .map(([, block]) => ({ ...block, text: cut(block.text, KEPT_CHARS).toWellFormed() }));
  }

  /** What the provider told and, for what it did not tell, an estimate. No price: one that is not known is not zero. */
  usage(
    { request, entries }: { request: { system_prompt: string }; entries: readonly unknown[] },
    content: readonly unknown[] = [],
  ): Usage {
    const input = Math.ceil((bytesOf(entries) + bytesOf(request.system_prompt)) / BYTES_PER_TOKEN);
    const output = Math.ceil(Math.max(this.#bytes, content.length === 0 ? 0 : bytesOf(content)) / BYTES_PER_TOKEN);
    const { input: told_in, output: told_out, ...rest } = this.#told ?? {};
    return { ...rest, input: told_in ?? input, output: Math.max(told_out ?? 0, output), estimated: true };
  }
}
