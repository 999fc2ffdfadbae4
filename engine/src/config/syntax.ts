// What the YAML parser refuses, in words. An unquoted placeholder breaks the text around it: it is told once, its consequences are not.
import { LineCounter, parseDocument, type YAMLParseError } from "yaml";
import type { Fault, Source } from "./place.ts";

const PARSING = { schema: "core", uniqueKeys: true, prettyErrors: false } as const;

function parse(text: string, file: string): Source {
  const lines = new LineCounter();
  return { file, doc: parseDocument(text, { ...PARSING, lineCounter: lines }), lines };
}

function syntaxFault(source: Source, error: YAMLParseError, hint?: string): Fault {
  const { line, col } = source.lines.linePos(error.pos[0]);
  const message = error.message.split("\n")[0]?.replace(/ at line \d+, column \d+:?$/, "") ?? "not valid YAML";
  const place = { file: source.file, line: Math.max(1, line), col: Math.max(1, col), path: "" };
  return hint === undefined ? { ...place, message } : { ...place, message, hint };
}

/** A placeholder that no quote stands before. */
const BARE = /(?<!["'$])\$\{[^}]*\}/g;

/** The text with the unquoted placeholders of one line made harmless, of the same length. Undefined when the line has none. */
function repaired(lines: readonly string[], at: number): string[] | undefined {
  const line = lines[at] ?? "";
  const harmless = line.replace(BARE, (found) => "x".repeat(found.length));
  return harmless === line ? undefined : lines.with(at, harmless);
}

const lineOf = (source: Source, error: YAMLParseError) => source.lines.linePos(error.pos[0]).line - 1;

/** The first error that an unquoted placeholder is to blame for: without it, its line has none. */
function blamed(source: Source, lines: readonly string[]): { error: YAMLParseError; without: string[] } | undefined {
  for (const error of source.doc.errors) {
    const at = lineOf(source, error);
    const without = repaired(lines, at);
    if (without === undefined) continue;
    const next = parse(without.join("\n"), source.file);
    if (next.doc.errors.every((other) => lineOf(next, other) !== at)) return { error, without };
  }
  return undefined;
}

/** The document, or everything that keeps it from being one. */
export function readYaml(text: string, file: string): { source: Source } | { faults: Fault[] } {
  let lines: readonly string[] = text.split("\n");
  const faults: Fault[] = [];
  // Each round repairs one line for good, so there are no more rounds than lines.
  for (;;) {
    const source = parse(lines.join("\n"), file);
    const found = blamed(source, lines);
    if (found === undefined) {
      faults.push(...source.doc.errors.map((error) => syntaxFault(source, error)));
      return faults.length === 0 ? { source } : { faults };
    }
    faults.push(syntaxFault(source, found.error, 'quote this placeholder: "${NAME}"'));
    lines = found.without;
  }
}
