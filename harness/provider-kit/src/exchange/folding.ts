// Feeds the frames of one answer through a provider's fold, the rule and the assembly. Decides nothing itself.
import type { AssistantMessageEvent } from "@iii/contracts";
import { isTooDeep } from "@iii/sdk";
import type { Assembly } from "../answer/assemble.ts";
import { CUT, follow, NEW_RULE, type Outcome, type Rule, takes, verdict } from "../answer/rule.ts";
import type { Scrubber } from "../answer/scrub.ts";
import { shown } from "../read.ts";
import type { Failure, FoldEvent, Incoming, Protocol, ProviderSettings } from "../spec.ts";
import type { Frame } from "./frames.ts";
import { jsonPieces, type Piece } from "./json.ts";

/**
 * The most that one answer may take as JSON, in bytes. A turn keeps an answer in a record of at most 16 MB, more than once and beside
 * results of up to 6 MB; the longest answers that models write (128,000 tokens) take a third of this.
 */
export const MAX_ANSWER_BYTES = 2 * 1024 * 1024;
export const tooLarge: Failure = { kind: "permanent", message: `the answer is larger than ${MAX_ANSWER_BYTES} bytes` };

/** The part of a provider that reads. */
type Reader<S> = Pick<Protocol<S, ProviderSettings>, "begin" | "fold" | "words">;

export class Folding<S = unknown> {
  readonly #spec: Reader<S>;
  readonly #assembly: Assembly;
  readonly #scrubber: Scrubber;
  readonly #tell: (events: readonly AssistantMessageEvent[]) => Promise<void>;
  #state: S;
  #rule: Rule = NEW_RULE;
  /** Set once nothing that follows can change how the answer came out. */
  done: Outcome | undefined;

  constructor(spec: Reader<S>, assembly: Assembly, scrubber: Scrubber, tell: (events: readonly AssistantMessageEvent[]) => Promise<void>) {
    this.#spec = spec;
    this.#assembly = assembly;
    this.#scrubber = scrubber;
    this.#tell = tell;
    this.#state = spec.begin();
  }

  /** Whether anything was understood so far. */
  get begun(): boolean {
    return this.#rule !== NEW_RULE;
  }

  /** `last`: the bytes are over, so what cannot be read was cut off. */
  async frame(frame: Frame, last: boolean): Promise<void> {
    if (frame.type === "stray") return this.#take([unreadable(frame.text, last)]);
    if (frame.type === "event") return await this.#data(frame.name, frame.data, last);
    await this.#data("", frame.text, last);
    // A document is whole: had it been cut, it would not be JSON.
    await this.#take([{ type: "closing" }]);
  }

  async #data(name: string, text: string, last: boolean): Promise<void> {
    const pieces = this.#clean(text) ?? [];
    if (pieces.length === 0) return this.#take([name === "error" ? said(text) : unreadable(text, last)]);
    for (const piece of pieces) {
      if (piece === "closing") await this.#take([{ type: "closing" }]);
      else await this.#value({ name, value: piece.value });
    }
  }

  /** The values of a text without the secrets. One that is too deep to be walked is read again from a clean text. */
  #clean(text: string): Piece[] | undefined {
    const pieces = jsonPieces(text);
    if (pieces?.some((piece) => piece !== "closing" && isTooDeep(piece.value))) return jsonPieces(this.#scrubber.text(text));
    return pieces?.map((piece) => (piece === "closing" ? piece : { value: this.#scrubber.value(piece.value) }));
  }

  /** The bytes are over. */
  end(): Outcome {
    this.done ??= verdict(this.#rule, this.#spec.words);
    return this.done;
  }

  async #value(incoming: Incoming): Promise<void> {
    if (this.done !== undefined) return;
    const [next, events] = this.#spec.fold(this.#state, incoming);
    this.#state = next;
    const failed = events.some((event) => event.type === "fail" || event.type === "unknown");
    await this.#take(incoming.name === "error" && !failed ? [said(shown(incoming.value))] : events);
  }

  async #take(events: readonly FoldEvent[]): Promise<void> {
    for (const event of events) {
      if (this.done !== undefined) return;
      this.#rule = follow(this.#rule, event);
      const { problem, closed } = this.#rule;
      if (problem === undefined && takes(this.#rule, event)) await this.#tell(this.#assembly.push(event));
      if (problem !== undefined || closed) this.done = verdict(this.#rule, this.#spec.words);
      else if (this.#assembly.bytes > MAX_ANSWER_BYTES) this.done = { type: "fail", failure: tooLarge };
    }
  }
}

const SHOWN = 300;
const short = (text: string) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
/** What is no JSON was most likely cut or garbled on its way. */
const unreadable = (text: string, last: boolean): FoldEvent =>
  last ? { type: "fail", failure: CUT } : { type: "unknown", kind: "transient", what: short(text) };
const said = (text: string): FoldEvent => ({ type: "fail", failure: { kind: "transient", message: `error: ${short(text)}` } });
