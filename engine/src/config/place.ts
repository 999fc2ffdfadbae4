// Where a fault stands in a config file, and how it is printed.
import { type Document, isMap, isPair, isScalar, type LineCounter } from "yaml";

export interface Fault {
  /** The file; for a value of the environment the name of its variable. */
  readonly file: string;
  /** From 1; 0 for a value that stands in no file. */
  readonly line: number;
  readonly col: number;
  /** Where in the document, e.g. `workers[1].enabled`; empty for the whole file. */
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
}

export type Path = readonly (string | number)[];

export interface Source {
  readonly file: string;
  readonly doc: Document;
  readonly lines: LineCounter;
}

export function pathText(path: Path): string {
  return path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`)).join("");
}

/** `config.yaml:7:5 workers[1].enabledd: unknown key; did you mean "enabled"?` */
export function formatFault(fault: Fault): string {
  const place = fault.line === 0 ? fault.file : `${fault.file}:${fault.line}:${fault.col}`;
  return `${place} ${fault.path === "" ? "" : `${fault.path}: `}${fault.message}${fault.hint === undefined ? "" : `; ${fault.hint}`}`;
}

function startOf(node: unknown): number | undefined {
  const range = typeof node === "object" && node !== null && "range" in node ? node.range : undefined;
  return Array.isArray(range) && typeof range[0] === "number" ? range[0] : undefined;
}

function keyStart(node: unknown, key: string): number | undefined {
  if (!isMap(node)) return undefined;
  return startOf(node.items.find((item) => isScalar(item.key) && item.key.value === key)?.key);
}

/** Offset of the node at `path`, or of its nearest ancestor. `key`: of the key itself inside its map. */
function offsetOf(doc: Document, path: Path, key?: string): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node: unknown = length === 0 ? doc.contents : doc.getIn(path.slice(0, length), true);
    const start = (key === undefined ? undefined : keyStart(node, key)) ?? startOf(node);
    if (start !== undefined) return start;
  }
  return 0;
}

export function faultAt(source: Source, path: Path, message: string, options: { key?: string; hint?: string | undefined } = {}): Fault {
  const { line, col } = source.lines.linePos(offsetOf(source.doc, path, options.key));
  const full = options.key === undefined ? path : [...path, options.key];
  const place = { file: source.file, line: Math.max(1, line), col: Math.max(1, col), path: pathText(full) };
  return options.hint === undefined ? { ...place, message } : { ...place, message, hint: options.hint };
}

/** The path of the last node of a chain of nodes that starts at the root. */
export function pathOf(chain: readonly unknown[]): Path {
  const path: (string | number)[] = [];
  for (const [index, node] of chain.entries()) {
    if (isPair(node) && isScalar(node.key)) path.push(String(node.key.value));
    const child = chain[index + 1];
    if (typeof node === "object" && node !== null && "items" in node && Array.isArray(node.items) && !isMap(node)) {
      path.push(node.items.indexOf(child));
    }
  }
  return path;
}
