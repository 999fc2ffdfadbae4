// The tool calls of this wire: which call a piece belongs to, with all that servers leave out or repeat. Pure.
import { isTooDeep, MAX_DEPTH } from "@iii/sdk";
import { absent, type Fields, record, shown, text } from "../read.ts";
import type { BlockKey, FoldEvent } from "../spec.ts";

export interface KnownCall {
  readonly key: BlockKey;
  readonly index: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly text: string;
}

interface Piece {
  readonly index: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly text: string | undefined;
  readonly problem: string | undefined;
  readonly extra: unknown;
}

const unknown = (what: string): FoldEvent => ({ type: "unknown", what });

/** Arguments as text: most servers send text, some the object itself. */
function written(value: unknown): Pick<Piece, "text" | "problem"> {
  if (value === undefined || value === null) return { text: undefined, problem: undefined };
  if (typeof value === "string") return { text: value, problem: undefined };
  if (isTooDeep(value)) return { text: undefined, problem: `the arguments nest more than ${MAX_DEPTH} levels deep` };
  return { text: JSON.stringify(value), problem: undefined };
}

const isName = (value: unknown) => value === undefined || value === null || typeof value === "string";

/** One entry of `tool_calls`, or a `function_call`; undefined when it is neither. */
function pieceOf(value: unknown): Piece | undefined {
  const fields = record(value);
  if (fields === undefined || !(absent(fields["type"]) || fields["type"] === "function")) return undefined;
  const inner = absent(fields["function"]) ? fields : record(fields["function"]);
  if (inner === undefined || !isName(inner["name"])) return undefined;
  const { id, index } = fields;
  return {
    index: typeof index === "number" ? index : undefined,
    id: absent(id) ? undefined : (text(id) ?? String(id)),
    name: absent(inner["name"]) ? undefined : text(inner["name"]),
    ...written(inner["arguments"] ?? inner["parameters"]),
    extra: fields["extra_content"] ?? undefined,
  };
}

function isWhole(json: string): boolean {
  try {
    return JSON.parse(json) !== undefined;
  } catch {
    return false;
  }
}

/** Which call a piece belongs to. The id decides; without one, the index, unless the piece starts another; without both, the newest. */
function callOf(calls: readonly KnownCall[], piece: Piece): KnownCall | undefined {
  const { id, index, name } = piece;
  if (id !== undefined) {
    const sameId = calls.findLast((call) => call.id === id && (index === undefined || call.index === index));
    // Else a call that was opened by its index and learns its id now.
    return sameId ?? calls.findLast((call) => call.id === undefined && index !== undefined && call.index === index);
  }
  if (index === undefined) return name === undefined ? calls.at(-1) : undefined;
  const sameIndex = calls.findLast((call) => call.index === index);
  const another = name !== undefined && sameIndex?.name !== undefined && (name !== sameIndex.name || isWhole(sameIndex.text));
  return another ? undefined : sameIndex;
}

function took(calls: readonly KnownCall[], piece: Piece): readonly [readonly KnownCall[], FoldEvent] {
  const known = callOf(calls, piece);
  const target: KnownCall = {
    key: known?.key ?? `call${calls.length}`,
    index: piece.index ?? known?.index,
    id: piece.id ?? known?.id,
    name: known?.name ?? piece.name,
    text: `${known?.text ?? ""}${piece.text ?? ""}`,
  };
  const { name, extra, problem } = piece;
  const event: FoldEvent = { type: "call", block: target.key, id: target.id, name, delta: piece.text, extra, problem };
  return [known === undefined ? [...calls, target] : calls.map((one) => (one === known ? target : one)), event];
}

/** The calls after one more delta, and what happened. */
export function callDeltas(known: readonly KnownCall[], delta: Fields): readonly [readonly KnownCall[], readonly FoldEvent[]] {
  const { tool_calls, function_call } = delta;
  const list = Array.isArray(tool_calls) ? tool_calls : absent(tool_calls) ? [] : [tool_calls];
  // The older form has one call and no id: its pieces all belong together.
  const older = absent(function_call) ? [] : [record(function_call) === undefined ? function_call : { index: -1, function: function_call }];
  let calls = known;
  const events: FoldEvent[] = [];
  for (const value of [...list, ...older]) {
    const piece = pieceOf(value);
    if (piece === undefined) return [calls, [...events, unknown(`a tool call ${shown(value)}`)]];
    const [next, event] = took(calls, piece);
    calls = next;
    events.push(event);
  }
  return [calls, events];
}
