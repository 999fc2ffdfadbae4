// YAML of which every mark means one thing. What a slip of the hand silently turns into something else is a fault with its place:
// texts over two lines, anchors, aliases, tags, directives, values left out, numbers that are not what they look like. Pure.
import { type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, type Node, type Pair, parseDocument, type Scalar } from "yaml";

export interface Fault {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}
/** Where something stands: an offset into the text. */
export type Offset = number;

/** `wrong`: its fault is told already. */
export type Tree =
  | { readonly kind: "map"; readonly at: Offset; readonly entries: readonly Entry[] }
  | { readonly kind: "list"; readonly at: Offset; readonly items: readonly Tree[] }
  /** `cut`: not quoted, and a comment stands behind it on its line: perhaps it was meant to be longer. */
  | { readonly kind: "scalar"; readonly at: Offset; readonly value: string | number | boolean | null; readonly cut: boolean }
  | { readonly kind: "wrong"; readonly at: Offset };
export type TreeMap = Extract<Tree, { kind: "map" }>;
export interface Entry {
  readonly key: string;
  readonly at: Offset;
  readonly value: Tree;
}

const MAX_TEXT = 1_048_576;
const MAX_LEVELS = 32;
/** Controls, format characters, lone surrogates, spaces that are not the space. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}|\ufffd/u;

/** Collects faults by offset. */
export class Faults {
  readonly list: Fault[] = [];
  readonly #lines: LineCounter;

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  add(at: Offset, message: string): void {
    const { line, col } = this.#lines.linePos(at);
    this.list.push({ line: Math.max(1, line), column: Math.max(1, col), message });
  }
}

/** The text as a tree; null for a text without content. Faults are added to `faults`; `lines` is filled. */
export function readYaml(text: string, lines: LineCounter, faults: Faults): Tree | null {
  if (text.length > MAX_TEXT) {
    faults.add(0, `longer than ${MAX_TEXT} characters`);
    return null;
  }
  const document = parse(text, lines, faults);
  if (document === undefined) return null;
  for (const error of document.errors) faults.add(error.pos[0], error.message.split("\n")[0] ?? "not YAML");
  if (document.errors.length > 0) return null;
  if (/^\uFEFF?%/u.test(text)) faults.add(0, "directives are not read: leave the % line out");
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null && (contents.source ?? "") === "")) return null;
  return new Walk(text, faults).tree(contents, 0);
}

function parse(text: string, lines: LineCounter, faults: Faults): Document.Parsed | undefined {
  try {
    return parseDocument(text, { lineCounter: lines, logLevel: "error" });
  } catch (cause) {
    faults.add(0, cause instanceof RangeError ? "nested too deeply" : "not YAML");
    return undefined;
  }
}

class Walk {
  readonly #text: string;
  readonly #faults: Faults;

  constructor(text: string, faults: Faults) {
    this.#text = text;
    this.#faults = faults;
  }

  tree(node: unknown, level: number): Tree {
    const at = startOf(node);
    if (level > MAX_LEVELS) return this.#wrong(at, "nested too deeply");
    if (isAlias(node)) return this.#wrong(at, "aliases are not read: write the value out");
    if (!isScalar(node) && !isMap(node) && !isSeq(node)) return this.#wrong(at, "a value is missing");
    const marked = this.#marked(node, at);
    if (marked !== undefined) return marked;
    if (isScalar(node)) return this.#scalar(node, at);
    if (isSeq(node)) return { kind: "list", at, items: node.items.map((item) => this.tree(item, level + 1)) };
    return { kind: "map", at, entries: node.items.flatMap((pair) => this.#entry(pair, at, level)) };
  }

  #marked(node: Node, at: Offset): Tree | undefined {
    const { tag, anchor } = node as { tag?: string; anchor?: string };
    if (anchor !== undefined) return this.#wrong(at, `anchors (&${anchor}) are not read: write the value out`);
    if (tag === undefined) return undefined;
    // The range is the value's, which starts behind the tag.
    if (tag.startsWith("!"))
      return this.#wrong(this.#text.lastIndexOf(tag, at), `a denial must be quoted ('${tag}'): a bare ! is a YAML tag`);
    const mark = this.#text.lastIndexOf("!", at);
    return this.#wrong(this.#text[mark - 1] === "!" ? mark - 1 : mark, "tags (!!…) are not read: quote the value, or leave the tag out");
  }

  #entry(pair: Pair<unknown, unknown>, map: Offset, level: number): Entry[] {
    const key = this.tree(pair.key, level + 1);
    if (key.kind === "wrong") return [];
    if (key.kind !== "scalar" || typeof key.value !== "string") {
      this.#faults.add(key.at, "a key must be a text; quote it");
      return [];
    }
    if (pair.value !== null) return [{ key: key.value, at: key.at, value: this.tree(pair.value, level + 1) }];
    return [{ key: key.value, at: key.at, value: this.#wrong(key.at || map, `'${key.value}' has no value`) }];
  }

  #scalar(node: Scalar, at: Offset): Tree {
    const { value, type } = node;
    const quoted = type === "QUOTE_SINGLE" || type === "QUOTE_DOUBLE";
    if (value === null && (node.source ?? "") === "") return this.#wrong(at, "a value is missing here");
    const end = node.range?.[1] ?? at;
    if (type === "BLOCK_FOLDED" || type === "BLOCK_LITERAL" || this.#text.slice(at, end).includes("\n"))
      return this.#wrong(at, "a text must stand on one line: this one goes on on the next (a wrong indent?)");
    if (typeof value === "number") return this.#number(node, value, at);
    if (typeof value === "string") return this.#string(node, value, at, quoted);
    if (typeof value === "boolean" || value === null) return { kind: "scalar", at, value, cut: false };
    return this.#wrong(at, "not a text, number, true, false or null");
  }

  #number(node: Scalar, value: number, at: Offset): Tree {
    if (node.source === String(value)) return { kind: "scalar", at, value, cut: false };
    return this.#wrong(at, `'${node.source}' is read as the number ${value}: write it so, or quote it`);
  }

  #string(node: Scalar, value: string, at: Offset, quoted: boolean): Tree {
    const shown = node.type === "QUOTE_DOUBLE" ? value.replace(/[\n\r\t]/g, "") : value;
    const odd = INVISIBLE.exec(shown)?.[0];
    if (odd !== undefined) {
      const code = (odd.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
      return this.#wrong(
        at,
        `an invisible character (U+${code}) in a text; in double quotes \\ begins an escape, single quotes take it as it is`,
      );
    }
    const cut = !quoted && /^[ \t]+#/.test(this.#text.slice(node.range?.[1] ?? at).slice(0, 80));
    return { kind: "scalar", at, value, cut };
  }

  #wrong(at: Offset, message: string): Tree {
    this.#faults.add(at, message);
    return { kind: "wrong", at };
  }
}

function startOf(node: unknown): Offset {
  return (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0] ?? 0;
}

/** A tree as the JSON value that it writes. */
export function toValue(tree: Tree): unknown {
  if (tree.kind === "scalar") return tree.value;
  if (tree.kind === "list") return tree.items.map(toValue);
  if (tree.kind === "wrong") return null;
  return Object.fromEntries(tree.entries.map(({ key, value }) => [key, toValue(value)]));
}
