// What a schema found wrong, in words for people: every field at once, what it should be, and what stood there.
import type { z } from "zod";

export interface Issue {
  /** Dotted path of the field; empty for the value itself. */
  readonly path: string;
  /** What is wrong with it, to stand behind the field's name: `is missing (a text)`. */
  readonly problem: string;
}

const WORDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  tuple: "a list",
  object: "an object",
  record: "an object",
  null: "null",
  undefined: "nothing",
  date: "a date",
};

const wordOf = (type: string): string => WORDS[type] ?? type;

function unionProblem(issue: z.core.$ZodIssueInvalidUnion): string {
  const nested = issue.errors.map((issues) => issues[0]).filter((found) => found !== undefined);
  const reasons = [...new Set(nested.map((found) => problemOf(found)))].slice(0, 4);
  return reasons.length === 0 ? `is wrong: ${issue.message}` : reasons.join(", or ");
}

function problemOf(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_union") return unionProblem(issue);
  const received = /received (\w+)/.exec(issue.message)?.[1];
  if (received === "undefined") return issue.code === "invalid_type" ? `is missing (${wordOf(issue.expected)})` : "is missing";
  if (issue.code === "invalid_type") {
    return received === undefined ? `must be ${wordOf(issue.expected)}` : `must be ${wordOf(issue.expected)}, not ${wordOf(received)}`;
  }
  if (issue.code === "unrecognized_keys") {
    return `has ${issue.keys.length === 1 ? "an unknown key" : "unknown keys"}: ${issue.keys.map((key) => `'${key}'`).join(", ")}`;
  }
  if (issue.code === "invalid_value") return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
  return `is wrong: ${issue.message}`;
}

/** Each issue with its words. */
export function problemsOf(error: z.core.$ZodError): { issue: z.core.$ZodIssue; problem: string }[] {
  return error.issues.map((issue) => ({ issue, problem: problemOf(issue) }));
}

/** Everything that a schema found wrong. */
export function issuesOf(error: z.core.$ZodError): Issue[] {
  return problemsOf(error).map(({ issue, problem }) => ({ path: issue.path.map(String).join("."), problem }));
}

const SHOWN = 8;

/** All issues as one line: `'key' is missing (a text); 'n' must be a number, not a text`. `whole` names the value itself. */
export function issueText(error: z.core.$ZodError, whole = "the payload"): string {
  const texts = issuesOf(error).map(({ path, problem }) => `${path === "" ? whole : `'${path}'`} ${problem}`);
  if (texts.length <= SHOWN) return texts.join("; ");
  return `${texts.slice(0, SHOWN).join("; ")}; and ${texts.length - SHOWN} more`;
}
