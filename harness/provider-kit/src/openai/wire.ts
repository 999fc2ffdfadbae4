// The Chat Completions wire as OpenAI and compatible servers write it, read field by field. Pure.
import { absent, type Fields, record, shown } from "../read.ts";
import type { BlockKey, FoldEvent, Incoming } from "../spec.ts";
import { callDeltas, type KnownCall } from "./calls.ts";
import { errorIn, openAiFailure } from "./errors.ts";
import { proseOf, thoughtIn } from "./prose.ts";
import { type Counts, counted, usageOf } from "./usage.ts";

export interface OpenAiFold {
  readonly calls: readonly KnownCall[];
  /** The text or thinking block that is being written. */
  readonly open: BlockKey | undefined;
  readonly details: readonly Fields[];
  readonly counts: Counts;
}
export const openAiBegin = (): OpenAiFold => ({ calls: [], open: undefined, details: [], counts: {} });

type Step = readonly [OpenAiFold, readonly FoldEvent[]];
const unknown = (state: OpenAiFold, what: string, before: readonly FoldEvent[] = []): Step => [
  state,
  [...before, { type: "unknown", what }],
];

/** Text and thinking take turns: what begins ends the other. */
function write(state: OpenAiFold, type: "text" | "thinking", delta: string): Step {
  if (delta === "") return [state, []];
  const close: FoldEvent[] = state.open === undefined || state.open === type ? [] : [{ type: "close", block: state.open }];
  return [{ ...state, open: type }, [...close, { type, block: type, delta }]];
}

/** One step after the other, as long as nothing is unknown. */
function chain(state: OpenAiFold, ...steps: readonly ((state: OpenAiFold) => Step)[]): Step {
  const events: FoldEvent[] = [];
  let now = state;
  for (const step of steps) {
    const [next, more] = step(now);
    now = next;
    events.push(...more);
    if (more.some((event) => event.type === "unknown")) break;
  }
  return [now, events];
}

function thinking(delta: Fields): (state: OpenAiFold) => Step {
  return (state) => {
    const { details, events, text, problem } = thoughtIn(delta, state.details);
    if (problem !== undefined) return unknown(state, problem, events);
    const [next, written] = write({ ...state, details }, "thinking", text);
    return [next, [...events, ...written]];
  };
}

function prose(delta: Fields, field: "content" | "refusal"): (state: OpenAiFold) => Step {
  return (state) => {
    const said = proseOf(delta[field]);
    if (said === undefined) return unknown(state, `${field} ${shown(delta[field])}`);
    const [next, events] = chain(state, ...said.map((one) => (now: OpenAiFold) => write(now, one.type, one.text)));
    // Thinking that came as a part of the content goes back as one.
    return said.some((one) => one.type === "thinking") ? [next, [{ type: "vendor", reasoning: "content" }, ...events]] : [next, events];
  };
}

function calls(delta: Fields): (state: OpenAiFold) => Step {
  return (state) => {
    const [known, events] = callDeltas(state.calls, delta);
    const close: FoldEvent[] = state.open === undefined || events.length === 0 ? [] : [{ type: "close", block: state.open }];
    return [{ ...state, calls: known, open: events.length === 0 ? state.open : undefined }, [...close, ...events]];
  };
}

/** What a server wants back with the whole message, e.g. Gemini's signature of its thoughts. */
function extras(delta: Fields): (state: OpenAiFold) => Step {
  const extra = record(delta["extra_content"]);
  return (state) => [state, extra === undefined ? [] : [{ type: "vendor", fields: { extra_content: extra } }]];
}

function ended(choice: Fields): (state: OpenAiFold) => Step {
  const reason = choice["finish_reason"];
  return (state) => {
    if (absent(reason)) return [state, []];
    return typeof reason === "string" ? [state, [{ type: "end", word: reason }]] : unknown(state, `finish_reason ${shown(reason)}`);
  };
}

/** The new part of a choice: a delta, or the message of a whole completion, or the text of the older kind of completion. */
function partOf(choice: Fields): Fields | undefined {
  if (!absent(choice["delta"])) return record(choice["delta"]);
  if (!absent(choice["message"])) return record(choice["message"]);
  return absent(choice["text"]) ? {} : { content: choice["text"] };
}

function chosen(choice: Fields): (state: OpenAiFold) => Step {
  return (state) => {
    if (!absent(choice["error"])) return [state, [{ type: "fail", failure: openAiFailure(undefined, choice["error"]) }]];
    const part = partOf(choice);
    if (part === undefined) return unknown(state, `a choice ${shown(choice)}`);
    return chain(state, thinking(part), prose(part, "content"), prose(part, "refusal"), calls(part), extras(part), ended(choice));
  };
}

function usage(chunk: Fields, choice: Fields | undefined): (state: OpenAiFold) => Step {
  return (state) => {
    const counts = counted(state.counts, record(chunk["x_groq"])?.["usage"], choice?.["usage"], chunk["usage"]);
    return counts === state.counts ? [state, []] : [{ ...state, counts }, [{ type: "usage", usage: usageOf(counts) }]];
  };
}

/** The first choice: we ask for one. */
function choiceOf(choices: unknown): Fields | undefined | "none" {
  if (absent(choices)) return "none";
  if (!Array.isArray(choices)) return undefined;
  const others = (choice: unknown) => (record(choice)?.["index"] ?? 0) !== 0;
  const own = choices.filter((choice) => !others(choice));
  return own.length === 0 ? "none" : record(own[0]);
}

export function openAiFold(state: OpenAiFold, { name, value }: Incoming): Step {
  const chunk = record(value);
  if (chunk === undefined) return unknown(state, shown(value));
  if (chunk["type"] === "ping") return [state, []];
  const error = errorIn(chunk) ?? (name === "error" ? chunk : undefined);
  if (error !== undefined) return [state, [{ type: "fail", failure: openAiFailure(undefined, error) }]];
  const choice = choiceOf(chunk["choices"]);
  if (choice === undefined || (choice === "none" && absent(chunk["choices"]) && absent(chunk["usage"])))
    return unknown(state, shown(chunk));
  const own = choice === "none" ? undefined : choice;
  return chain(state, ...(own === undefined ? [] : [chosen(own)]), usage(chunk, own));
}
