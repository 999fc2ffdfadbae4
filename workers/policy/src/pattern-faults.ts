// What is wrong with a function pattern, an argument's name or a regular expression: slips that would make a rule wider than it reads,
// or a denial emptier. Pure.
import { compileGlob } from "@iii/sdk";
import { RE2JS } from "re2js";

const MAX_PATTERN_LENGTH = 1_000;
const PATTERN = /^[A-Za-z0-9_.:/@#~+*-]+$/;

/** A function pattern's fault; undefined when it is one. */
export function functionFault(pattern: string): string | undefined {
  if (pattern === "") return "an empty function pattern";
  if (pattern.startsWith("!")) return `'${pattern}': a denial is written '!' and a pattern, or with \`action: deny\``;
  if (pattern.length > 256) return "a function pattern is at most 256 characters";
  if (!PATTERN.test(pattern))
    return `'${pattern}' is no function pattern: those are letters, digits, _ . : / @ # ~ + - and *, without spaces and quotes (a wrong indent?)`;
  if (pattern.includes(":::") || pattern.endsWith("::"))
    return `'${pattern}' names no function; for all of a family write '${pattern.replace(/:+$/, "")}::*'`;
  return undefined;
}

/** Worth saying, and no fault: an id may hold a single colon. */
export function functionDoubt(pattern: string): string | undefined {
  const doubled = pattern.replace(/(?<!:):(?!:)/g, "::");
  return doubled === pattern ? undefined : `'${pattern}' has a single colon; was '${doubled}' meant?`;
}

export function fieldFault(field: string): string | undefined {
  if (field !== "" && field.split(".").every((step) => step !== "" && step.trim() === step)) return undefined;
  return `'${field}' names no argument: write its name, or a way into it such as args.0, args.any, args.every`;
}

/** Texts with nothing in common: an expression that holds for all of them constrains nothing. */
const UNLIKE = ["a", "Z9", "/", "-", "é", "\u{10ffff}"];

export function regexFault(pattern: string, action: "allow" | "deny" | undefined): string | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH) return `longer than ${MAX_PATTERN_LENGTH} characters`;
  if (/\p{C}/u.test(pattern)) return "a control character: write the expression in single quotes";
  let expression: RE2JS;
  try {
    expression = RE2JS.compile(pattern);
  } catch (cause) {
    return cause instanceof Error ? cause.message : "not a regular expression";
  }
  if (UNLIKE.every((text) => expression.test(text)))
    return "holds for every text; for an argument that may be anything write `anything: true`";
  if (action !== "allow") return undefined;
  if (/(?<!\\)(?:\\\\)*\(\?[A-Za-z-]*m/.test(pattern))
    return "the flag m lets ^ hold in the middle of a text; an allow rule takes it for its beginning";
  const anchored = alternatives(pattern).map(isAnchored);
  if (anchored.includes(true) && anchored.includes(false)) return "one alternative begins with ^ and another does not: write ^(?:…|…)";
  return undefined;
}

/** Worth saying of an allow rule: an expression without ^ holds anywhere in the text. */
export function regexDoubt(pattern: string): string | undefined {
  return alternatives(pattern).some(isAnchored) ? undefined : "without ^ it holds anywhere in the text";
}

/** A quoted run, an escaped character, a class, or one character. */
const TOKEN = /\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|./gsu;

/** Splits at the `|` of the outermost level. */
function alternatives(pattern: string): string[] {
  const parts = [""];
  let depth = 0;
  for (const token of pattern.match(TOKEN) ?? []) {
    if (token === "(") depth += 1;
    if (token === ")") depth -= 1;
    if (token === "|" && depth === 0) parts.push("");
    else parts[parts.length - 1] += token;
  }
  return parts;
}

/** Also of one group: `(?:^a|^b)` and `(?i)^a` are anchored. */
function isAnchored(part: string): boolean {
  const bare = part.replace(/^(?:\(\?[a-zA-Z-]+\))+/, "");
  if (bare.startsWith("^") || bare.startsWith("\\A")) return true;
  const inner = /^\((?:\?(?:P?<\w+>|[a-zA-Z-]*:))?(.*)\)[^()|*?+{]*$/s.exec(bare)?.[1];
  return inner !== undefined && alternatives(`(${inner})`).length === 1 && alternatives(inner).every(isAnchored);
}

/** Whether every id that `inner` matches is matched by `outer`. */
export function covers(outer: string, inner: string): boolean {
  return compileGlob(outer)(inner);
}
