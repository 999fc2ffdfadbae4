// Text and thinking of this wire in all the forms in which servers write them. Pure.
import { absent, type Fields, record, shown, text } from "../read.ts";
import type { FoldEvent } from "../spec.ts";

type Prose = { readonly type: "text" | "thinking"; readonly text: string };

/** Parts of a content list that say nothing by themselves. */
const HARMLESS: ReadonlySet<unknown> = new Set(["reference", "citation", "citations", "annotation", "annotations"]);
const TEXT: ReadonlySet<unknown> = new Set([undefined, "text", "output_text", "refusal"]);
const THINKING: ReadonlySet<unknown> = new Set(["thinking", "reasoning", "reasoning.text", "reasoning.summary", "summary_text"]);

/** What a content part holds: under its own name or a common one. */
const inside = (part: Fields): unknown =>
  [part["text"], part["refusal"], part["thinking"], part["reasoning"], part["summary"], part["content"]].find((value) => !absent(value));

/** A text, a part, or a list of them; undefined when any of it is not understood. */
export function proseOf(value: unknown, as: Prose["type"] = "text"): readonly Prose[] | undefined {
  if (absent(value)) return [];
  if (typeof value === "string") return [{ type: as, text: value }];
  if (Array.isArray(value)) return together(value.map((item) => proseOf(item, as)));
  const part = record(value);
  return part === undefined ? undefined : partProse(part, as);
}

function partProse(part: Fields, as: Prose["type"]): readonly Prose[] | undefined {
  const { type } = part;
  if (HARMLESS.has(type)) return [];
  const kind = THINKING.has(type) ? "thinking" : TEXT.has(type) ? as : undefined;
  const held = inside(part);
  return kind === undefined || (held === undefined && type === undefined) ? undefined : proseOf(held, kind);
}

function together(lists: readonly (readonly Prose[] | undefined)[]): readonly Prose[] | undefined {
  const known = lists.filter((list) => list !== undefined);
  return known.length === lists.length ? known.flat() : undefined;
}

/** Fields in which servers send thinking beside the text; the first that says something counts, the others repeat it. */
const REASONING = ["reasoning_content", "reasoning", "reasoning_text", "thinking"] as const;

type Detail = Fields;

/** OpenRouter's pieces of thinking, encrypted ones too. They go back as one list, pieces of one item joined. */
function joinedDetails(known: readonly Detail[], added: readonly Detail[]): readonly Detail[] {
  const list = [...known];
  for (const item of added) {
    const last = list.at(-1);
    const same =
      last !== undefined &&
      last["type"] === item["type"] &&
      last["index"] === item["index"] &&
      (absent(item["id"]) || last["id"] === item["id"]);
    if (same) list[list.length - 1] = grown(last, item);
    else list.push(item);
  }
  return list;
}

const GROWING: ReadonlySet<string> = new Set(["text", "summary", "data", "signature"]);

function grown(known: Detail, added: Detail): Detail {
  const next = Object.entries(added).flatMap(([key, value]): [string, unknown][] => {
    if (absent(value)) return [];
    return [[key, GROWING.has(key) && typeof value === "string" ? `${text(known[key]) ?? ""}${value}` : value]];
  });
  return { ...known, ...Object.fromEntries(next) };
}

export interface Thought {
  readonly details: readonly Detail[];
  readonly events: readonly FoldEvent[];
  /** The thinking text of this delta. */
  readonly text: string;
  readonly problem?: string;
}

/** The thinking in one delta, and what the server wants back for it. */
export function thoughtIn(delta: Fields, known: readonly Detail[]): Thought {
  const field = REASONING.find((name) => !absent(delta[name]));
  const given = delta["reasoning_details"];
  const added = Array.isArray(given) ? given.map(record) : [];
  if ((!absent(given) && !Array.isArray(given)) || added.includes(undefined)) {
    return { details: known, events: [], text: "", problem: `reasoning_details ${shown(given)}` };
  }
  const details =
    added.length === 0
      ? known
      : joinedDetails(
          known,
          added.filter((item) => item !== undefined),
        );
  const events: FoldEvent[] = details === known ? [] : [{ type: "vendor", fields: { reasoning_details: details } }];
  const prose = field === undefined ? added.flatMap(detailText) : proseOf(delta[field], "thinking");
  if (prose === undefined) return { details, events, text: "", problem: `${field} ${shown(delta[field ?? ""])}` };
  // Details hold the thinking themselves: it goes back in one form only.
  if (field !== undefined && details.length === 0) events.push({ type: "vendor", reasoning: field });
  return { details, events, text: prose.map((one) => one.text).join("") };
}

function detailText(detail: Detail | undefined): Prose[] {
  const said = text(detail?.["text"]) ?? text(detail?.["summary"]);
  return said === undefined ? [] : [{ type: "thinking", text: said }];
}
