// Arguments in the form in which their function will use them. A value is judged in that form or not at all: what has no certain form
// asks. Pure and lexical: links are the business of the function that opens the path.

import type { ArgumentKind } from "@iii/sdk";

/** What a function declares as `arguments` in its registration metadata. */
export type Declared = Readonly<Record<string, ArgumentKind>>;
export type Normal = { readonly clear: true; readonly value: unknown } | { readonly clear: false };

const KINDS: ReadonlySet<unknown> = new Set<ArgumentKind>(["path", "command", "arguments", "input"]);
const UNCLEAR: Normal = { clear: false };
const MAX_PATH = 4_096;

/** The declaration in a function's metadata; undefined when there is none, or one that is not understood. */
export function declaredArguments(metadata: unknown): Declared | undefined {
  const declared = member(metadata, "arguments");
  if (typeof declared !== "object" || declared === null || Array.isArray(declared)) return undefined;
  const entries = Object.entries(declared);
  return entries.every(([, kind]) => KINDS.has(kind)) ? (Object.fromEntries(entries) as Declared) : undefined;
}

function member(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}

export function normalArgument(kind: ArgumentKind | undefined, value: unknown): Normal {
  if (kind === "arguments") return argumentList(value);
  if (value === undefined || value === null || kind === undefined || kind === "input") return { clear: true, value };
  return kind === "path" ? paths(value) : command(value);
}

function argumentList(value: unknown): Normal {
  if (value === undefined || value === null) return { clear: true, value: [] };
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string" && !item.includes("\0"));
  return isList ? { clear: true, value } : UNCLEAR;
}

function paths(value: unknown): Normal {
  if (!Array.isArray(value)) return path(value);
  const all = value.map(path);
  return all.every((one) => one.clear) ? { clear: true, value: all.map((one) => (one.clear ? one.value : undefined)) } : UNCLEAR;
}

/** Controls, format characters, halves of pairs, `%` escapes of `.`, `/`, `\` and NUL, drives and schemes, and what other systems take for a separator. */
const UNCERTAIN = /[\p{C}\p{Zl}\p{Zp}\\:\u2215\u2216\u29f5\u29f8\u29f9]|%(?:2e|2f|5c|00|25)/iu;
/** Other systems drop dots and spaces at the end of a name. */
const DROPPED_END = /[. ]$/;

/** `./docs//x` is `docs/x`; `docs/../x` is `x`; what leads above its start has no form. */
function path(value: unknown): Normal {
  if (typeof value !== "string" || value.length > MAX_PATH) return UNCLEAR;
  if (UNCERTAIN.test(value) || value.normalize("NFKC") !== value || value.startsWith("~")) return UNCLEAR;
  const parts = resolved(value.split("/").filter((part) => part !== "" && part !== "."));
  if (parts === undefined) return UNCLEAR;
  const text = parts.join("/");
  return { clear: true, value: value.startsWith("/") ? `/${text}` : text || "." };
}

function resolved(parts: readonly string[]): readonly string[] | undefined {
  const kept: string[] = [];
  for (const part of parts) {
    if (part !== ".." && DROPPED_END.test(part)) return undefined;
    if (part !== "..") kept.push(part);
    else if (kept.pop() === undefined) return undefined;
  }
  return kept;
}

/** A name that is looked up, or a path: `./git` is not `git`. */
function command(value: unknown): Normal {
  if (typeof value !== "string" || !/^[\w./@+][\w./@+-]*$/.test(value)) return UNCLEAR;
  if (!value.includes("/")) return { clear: true, value };
  const normal = path(value);
  if (!normal.clear || value.startsWith("/")) return normal;
  return { clear: true, value: `./${String(normal.value)}` };
}

/** A text that becomes another one when it is read as a path: no expression about its beginning says where it leads. */
export function isWandering(text: string): boolean {
  return /(?:^|[/\\=:,])\.\.(?:$|[/\\])/.test(text) || /\0|%(?:2e|2f|5c|00)/i.test(text);
}

/** The forms that a careless reader may take a text for: other case, look-alikes, the program behind a path. */
export function readings(kind: ArgumentKind | undefined, text: string): readonly string[] {
  const folded = text.normalize("NFKC");
  return kind === "command" ? [folded, folded.slice(folded.lastIndexOf("/") + 1)] : [folded];
}
