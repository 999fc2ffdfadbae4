// Permission rules, compiled, and the decision they give. Pure: no files, no clock. The first matching rule decides.
import { isDeepStrictEqual } from "node:util";
import { compileGlob } from "@iii/sdk";
import { RE2JS } from "re2js";
import type { PermissionDecision } from "./contract.ts";
import { type Declared, isWandering, normalArgument, readings } from "./normal-form.ts";

export interface Constraint {
  /** An argument's name, or a way into it: `args.0`, `args.any`, `args.every`, `options.depth`. */
  readonly field: string;
  readonly operator: "equals" | "matches" | "anything";
  readonly value: unknown;
}

/** A rule as written, checked for shape but not compiled. */
export interface RuleSource {
  readonly pattern: string;
  readonly action: "allow" | "deny";
  readonly rule_id: string;
  readonly constraints: readonly Constraint[];
}

type Args = Readonly<Record<string, unknown>>;
/** `escaped`: the value has a form that the constraint cannot judge, so it did not hold, but nobody may conclude that it is harmless. */
type Verdict = "holds" | "fails" | "escaped";
type Test = (value: unknown) => Verdict;
type Check = (args: Args, declared: Declared | undefined) => Verdict;

interface CompiledRule {
  readonly source: RuleSource;
  readonly matchesId: (id: string) => boolean;
  readonly checks: readonly Check[];
}

export interface RuleSet {
  readonly rules: readonly CompiledRule[];
}

export const NO_RULES: RuleSet = { rules: [] };

/** Longer values are not judged by `matches`: no allow rule matches them, and past a deny rule they ask. */
export const MAX_MATCHED_LENGTH = 262_144;

/** Compiles checked rules. @throws when a `matches` pattern is not RE2 syntax. */
export function compileRules(sources: readonly RuleSource[]): RuleSet {
  return { rules: sources.map(compileRule) };
}

function compileRule(source: RuleSource): CompiledRule {
  const constraints = [...source.constraints].sort((a, b) => compare(a.field, b.field) || compare(a.operator, b.operator));
  const checks = constraints.map((constraint) => compileConstraint(constraint, source.action));
  if (source.action === "allow" && constraints.length > 0) checks.push(speaksOfAll(constraints.map(({ field }) => field.split("."))));
  return { source: { ...source, constraints }, matchesId: compileGlob(source.pattern), checks };
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function compileConstraint({ field, operator, value }: Constraint, action: RuleSource["action"]): Check {
  const [name = "", ...way] = field.split(".");
  const expression = operator === "matches" ? RE2JS.compile(String(value)) : undefined;
  const folded = operator === "matches" ? RE2JS.compile(String(value), RE2JS.CASE_INSENSITIVE) : undefined;
  return (args, declared) => {
    const kind = declared === undefined ? undefined : own(declared, name);
    const normal = normalArgument(kind, own(args, name));
    if (!normal.clear) return "escaped";
    const test: Test = (given) => {
      const verdict = expression === undefined ? sameAs(value, given, operator, kind) : matching(expression, given, kind);
      if (verdict !== "fails" || action === "allow" || typeof given !== "string") return verdict;
      const close = readings(kind, given).some((text) =>
        folded === undefined ? text.toLowerCase() === String(value).toLowerCase() : folded.test(text),
      );
      return close ? "escaped" : "fails";
    };
    return along(way, normal.value, test);
  };
}

function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** Follows `args.0`, `args.any`, `args.every` and names into a value. */
function along(way: readonly string[], value: unknown, test: Test): Verdict {
  const [step, ...rest] = way;
  if (value === undefined || (value === null && step !== undefined)) return "fails";
  if (step === undefined) return test(value);
  if (!Array.isArray(value)) return typeof value === "object" ? along(rest, own(value as Record<string, unknown>, step), test) : "escaped";
  if (step === "any" || step === "every")
    return ofAll(
      step,
      value.map((item) => along(rest, item, test)),
    );
  return /^\d+$/.test(step) ? along(rest, value[Number(step)], test) : "escaped";
}

function ofAll(how: "any" | "every", verdicts: readonly Verdict[]): Verdict {
  const decisive = how === "any" ? "holds" : "fails";
  if (verdicts.includes(decisive)) return decisive;
  if (verdicts.includes("escaped")) return "escaped";
  return how === "any" ? "fails" : "holds";
}

/** Another shape than the rule's (a list for a text) was not foreseen, and so is not judged. */
function sameAs(value: unknown, given: unknown, operator: Constraint["operator"], kind: Declared[string] | undefined): Verdict {
  if (operator === "anything") return "holds";
  const normal = normalArgument(kind === "path" && typeof value === "string" ? kind : undefined, value);
  if (isDeepStrictEqual(given, normal.clear ? normal.value : value)) return "holds";
  return shapeOf(value) === shapeOf(given) ? "fails" : "escaped";
}

function shapeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "list" : typeof value;
}

function matching(expression: RE2JS, given: unknown, kind: Declared[string] | undefined): Verdict {
  if (given === null) return "fails";
  if (typeof given !== "string" || given.length > MAX_MATCHED_LENGTH) return "escaped";
  if (kind !== "path" && isWandering(given)) return "escaped";
  return expression.test(given) ? "holds" : "fails";
}

/**
 * An allow rule with constraints allows what it speaks of: every argument that the function declares, or every argument of a function
 * that declares none, must be absent, empty or named.
 */
function speaksOfAll(ways: readonly (readonly string[])[]): Check {
  return (args, declared) => {
    const names = declared === undefined ? Object.keys(args) : Object.keys(declared).filter((name) => Object.hasOwn(args, name));
    return names.every((name) => isSpokenOf(args[name], below(ways, name))) ? "holds" : "fails";
  };
}

function below(ways: readonly (readonly string[])[], ...steps: readonly string[]): readonly (readonly string[])[] {
  return ways.filter(([first]) => first !== undefined && steps.includes(first)).map((way) => way.slice(1));
}

function isSpokenOf(value: unknown, ways: readonly (readonly string[])[]): boolean {
  if (value === undefined || value === null || value === "") return true;
  if (ways.some((way) => way.length === 0)) return true;
  if (Array.isArray(value)) return value.every((item, i) => item !== null && isNamed(item, below(ways, String(i), "every")));
  if (typeof value !== "object") return false;
  return Object.entries(value).every(([key, item]) => isSpokenOf(item, below(ways, key)));
}

/** An element counts, empty or not: it stands in the list. */
function isNamed(item: unknown, ways: readonly (readonly string[])[]): boolean {
  return ways.length > 0 && isSpokenOf(item, ways);
}

/** Whether a decision about this id looks at arguments, and so at what the function declares about them. */
export function looksAtArguments(set: RuleSet, function_id: string): boolean {
  return set.rules.some((rule) => rule.checks.length > 0 && rule.matchesId(function_id));
}

/**
 * Decides one call. A deny rule whose constraint met a value that it cannot judge (an array where a string was expected, a path
 * without a normal form) turns a later allow into a question: changing an argument's shape must not get past a denial.
 */
export function decide(set: RuleSet, function_id: string, args: Args, declared?: Declared): PermissionDecision {
  let doubt = false;
  for (const rule of set.rules) {
    if (!rule.matchesId(function_id)) continue;
    const verdict = judge(rule, args, declared);
    if (verdict === "holds") return answer(rule, doubt);
    if (verdict === "escaped" && rule.source.action === "deny") doubt = true;
  }
  return { decision: "needs_approval" };
}

function judge(rule: CompiledRule, args: Args, declared: Declared | undefined): Verdict {
  let escaped = false;
  for (const check of rule.checks) {
    const verdict = check(args, declared);
    if (verdict === "fails") return "fails";
    if (verdict === "escaped") escaped = true;
  }
  return escaped ? "escaped" : "holds";
}

function answer({ source }: CompiledRule, doubt: boolean): PermissionDecision {
  const { rule_id, action, constraints } = source;
  if (action === "allow") return doubt ? { decision: "needs_approval" } : { decision: "allow", rule_id };
  const first = constraints[0];
  const matched = first === undefined ? {} : { matched_constraint: { ...first } };
  return { decision: "deny", rule_id, rule_action: "deny", ...matched };
}
