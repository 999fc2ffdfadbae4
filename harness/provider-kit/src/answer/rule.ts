// What makes an answer good. Pure, and the same for every vendor: a wire says what happened in the words of `FoldEvent`, this decides.
//
// R1  All that comes between the first byte and the end was understood, or is harmless. One thing that was not spoils the answer.
// R2  The answer ended by an end word that the wire knows; a closing line, or the end of the bytes, is no word.
// R3  It says something: text or a call. Thinking alone says nothing.
// R4  What belongs to a block that is skipped is skipped with it; what belongs to no block, or to one that is over, is not understood.
// R5  A call has a name, and its end where the wire ends its blocks. Words that promise a call come with one.
// R6  What comes after the end word makes the word doubtful: the closing line must then follow.
import type { StopReason } from "@iii/contracts";
import type { BlockKey, Failure, FoldEvent } from "../spec.ts";

/** What each end word of a wire means. A word that is not listed is not understood. */
export type Words = Readonly<Record<string, StopReason | Failure>>;

export type Outcome = { readonly type: "end"; readonly stop: StopReason } | { readonly type: "fail"; readonly failure: Failure };

type Kind = "text" | "thinking" | "call" | "skipped";
interface Block {
  readonly kind: Kind;
  readonly open: boolean;
  /** Whether the wire said that it starts: only then it must also say that it ends. */
  readonly announced: boolean;
  readonly named: boolean;
}

export interface Rule {
  readonly begun: boolean;
  readonly blocks: ReadonlyMap<BlockKey, Block>;
  /** Whether any text came that is not white space. */
  readonly said: boolean;
  readonly words: readonly string[];
  readonly late: boolean;
  readonly closed: boolean;
  readonly problem: Failure | undefined;
}

export const NEW_RULE: Rule = {
  begun: false,
  blocks: new Map(),
  said: false,
  words: [],
  late: false,
  closed: false,
  problem: undefined,
};

const failed = (message: string, retry = true): Outcome => ({ type: "fail", failure: { kind: "transient", message, retry } });
const spoiled = (rule: Rule, message: string): Rule => ({ ...rule, problem: { kind: "permanent", message } });
const withBlock = (rule: Rule, key: BlockKey, block: Block): Rule => ({ ...rule, blocks: new Map(rule.blocks).set(key, block) });

function opened(rule: Rule, { block, kind, name }: FoldEvent & { type: "open" }): Rule {
  if (rule.blocks.has(block)) return spoiled(rule, `block ${block} was started twice`);
  return withBlock(rule, block, { kind, open: true, announced: true, named: named(name) });
}

function closed(rule: Rule, key: BlockKey): Rule {
  const block = rule.blocks.get(key);
  return block === undefined
    ? spoiled(rule, `the end of block ${key}, which never started`)
    : withBlock(rule, key, { ...block, open: false });
}

const named = (name: string | undefined): boolean => name !== undefined && name !== "";

type Delta = FoldEvent & { type: "text" | "thinking" | "signature" | "opaque_thinking" | "call" };
const KIND = { text: "text", thinking: "thinking", signature: "thinking", opaque_thinking: "thinking", call: "call" } as const;

function misplaced(known: Block | undefined, kind: Kind): string | undefined {
  if (known === undefined || !known.announced) return undefined;
  if (!known.open) return "is over";
  return known.kind === kind ? undefined : `is ${known.kind}`;
}

function grown(rule: Rule, delta: Delta): Rule {
  const known = rule.blocks.get(delta.block);
  if (known?.kind === "skipped") return rule;
  const kind = KIND[delta.type];
  const wrong = misplaced(known, kind);
  if (wrong !== undefined) return spoiled(rule, `${kind} for block ${delta.block}, which ${wrong}`);
  const late = rule.late || rule.words.length > 0;
  const said = rule.said || (delta.type === "text" && delta.delta.trim() !== "");
  const next = late === rule.late && said === rule.said ? rule : { ...rule, late, said };
  return withDelta(next, delta.block, known?.kind === kind ? known : undefined, kind, delta.type === "call" && named(delta.name));
}

function withDelta(rule: Rule, key: BlockKey, known: Block | undefined, kind: Kind, name: boolean): Rule {
  const block = known ?? { kind, open: true, announced: false, named: false };
  return known?.open && (known.named || !name) ? rule : withBlock(rule, key, { ...block, open: true, named: block.named || name });
}

/** The rule after one more event. Once there is a problem, or after the closing line, nothing changes it. */
export function follow(rule: Rule, event: FoldEvent): Rule {
  if (rule.problem !== undefined || rule.closed) return rule;
  switch (event.type) {
    case "begin":
      return rule.begun ? spoiled(rule, "a second answer began inside the first") : { ...rule, begun: true };
    case "open":
      return opened(rule, event);
    case "close":
      return closed(rule, event.block);
    case "end":
      return { ...rule, words: [...rule.words, event.word] };
    case "closing":
      return { ...rule, closed: true };
    case "unknown":
      return {
        ...rule,
        problem: { kind: event.kind ?? "permanent", message: `the provider sent what cannot be understood: ${event.what}` },
      };
    case "fail":
      return { ...rule, problem: event.failure };
    case "usage":
    case "vendor":
      return rule;
    default:
      return grown(rule, event);
  }
}

/** Whether an event is part of the answer. */
export function takes(rule: Rule, event: FoldEvent): boolean {
  return !("block" in event) || rule.blocks.get(event.block)?.kind !== "skipped";
}

/** The most careful reading of all the words that were said: a failure, then a cut, then the last one. */
function meaning(spoken: readonly string[], words: Words): StopReason | Failure {
  const read = spoken.map((word): StopReason | Failure => {
    const known = Object.hasOwn(words, word) ? words[word] : undefined;
    return known ?? { kind: "permanent", message: `the provider ended the answer with '${word.slice(0, 100)}', which is no known end` };
  });
  return read.find((one) => typeof one === "object") ?? read.find((one) => one === "length") ?? read.at(-1) ?? "end";
}

function callProblem(blocks: readonly Block[]): string | undefined {
  const calls = blocks.filter((block) => block.kind === "call");
  if (calls.some((call) => !call.named)) return "a call without a name";
  return calls.some((call) => call.announced && call.open) ? "a call that was never finished" : undefined;
}

export const CUT: Failure = { kind: "transient", message: "the stream was cut before its end (truncated)" };

/** How an answer came out whose bytes are over, or whose closing line was read. */
export function verdict(rule: Rule, words: Words): Outcome {
  if (rule.problem !== undefined) return { type: "fail", failure: rule.problem };
  if (rule.words.length === 0 || (rule.late && !rule.closed)) return { type: "fail", failure: CUT };
  const stop = meaning(rule.words, words);
  return typeof stop === "object" ? { type: "fail", failure: stop } : worth(rule, stop);
}

/** An answer that was understood to its end may still be worth nothing. */
function worth({ blocks, said, words }: Rule, stop: StopReason): Outcome {
  const list = [...blocks.values()];
  const broken = callProblem(list);
  if (broken !== undefined) return failed(`the provider sent ${broken}`);
  // Calls decide, whatever word the vendor used; a cut by length stays one.
  if (list.some((block) => block.kind === "call")) return { type: "end", stop: stop === "length" ? "length" : "function_call" };
  if (stop === "function_call") return failed(`the answer ended as '${words.at(-1)}' but makes no call`, false);
  return said ? { type: "end", stop } : failed(`empty answer: it ended as '${words.at(-1)}' without text or call`, false);
}
