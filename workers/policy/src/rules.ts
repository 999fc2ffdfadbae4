// Permission rules, compiled, and the decision they give. Pure: no files, no clock. The first matching rule decides.

import { compileGlob } from "@iii/sdk";
import { RE2JS } from "re2js";
import type { PermissionDecision } from "./contract.ts";

export interface Constraint {
  readonly field: string;
  readonly operator: "equals" | "matches";
  readonly value: unknown;
}

/** A rule as written, checked for shape but not compiled. */
export interface RuleSource {
  readonly pattern: string;
  readonly action: "allow" | "deny";
  readonly rule_id: string;
  readonly constraints: readonly Constraint[];
}

/** `escaped`: the value has a shape that the constraint cannot judge, so it did not hold, but nobody may conclude that it is harmless. */
type Verdict = "holds" | "fails" | "escaped";

interface CompiledRule {
  readonly source: RuleSource;
  readonly matchesId: (id: string) => boolean;
  readonly checks: readonly ((args: Readonly<Record<string, unknown>>) => Verdict)[];
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
  const sorted = sortConstraints(source.constraints);
  return { source: { ...source, constraints: sorted }, matchesId: compileGlob(source.pattern), checks: sorted.map(compileConstraint) };
}

function sortConstraints(constraints: readonly Constraint[]): readonly Constraint[] {
  return [...constraints].sort((a, b) => compare(a.field, b.field) || compare(a.operator, b.operator));
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function compileConstraint({ field, operator, value }: Constraint): CompiledRule["checks"][number] {
  if (operator === "equals") return (args) => (Object.hasOwn(args, field) && deepEqual(args[field], value) ? "holds" : "fails");
  const expression = RE2JS.compile(String(value));
  return (args) => {
    const given = Object.hasOwn(args, field) ? args[field] : undefined;
    if (given === undefined || given === null) return "fails";
    if (typeof given !== "string" || given.length > MAX_MATCHED_LENGTH) return "escaped";
    return expression.test(given) ? "holds" : "fails";
  };
}

/**
 * Decides one call. A deny rule whose constraint met a value that it cannot judge (an array where a string was expected) turns a later
 * allow into a question: changing an argument's shape must not get past a denial.
 */
export function decide(set: RuleSet, function_id: string, args: Readonly<Record<string, unknown>>): PermissionDecision {
  let doubt = false;
  for (const rule of set.rules) {
    if (!rule.matchesId(function_id)) continue;
    const verdict = judge(rule, args);
    if (verdict === "holds") return answer(rule, doubt);
    if (verdict === "escaped" && rule.source.action === "deny") doubt = true;
  }
  return { decision: "needs_approval" };
}

function judge(rule: CompiledRule, args: Readonly<Record<string, unknown>>): Verdict {
  let escaped = false;
  for (const check of rule.checks) {
    const verdict = check(args);
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

/** Structural equality of JSON values; key order does not matter. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => deepEqual(item, b[i]));
  }
  const left = Object.entries(a);
  const right = new Map<string, unknown>(Object.entries(b));
  return left.length === right.size && left.every(([key, value]) => right.has(key) && deepEqual(value, right.get(key)));
}
