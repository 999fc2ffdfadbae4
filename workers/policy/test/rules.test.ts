// The rules table and its properties, against a second matcher written in the plainest way.

import { isClosedToAgents } from "@iii/engine/contract";
import { compileGlob } from "@iii/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileRules, decide, MAX_MATCHED_LENGTH, type RuleSource } from "../src/rules.ts";

function rule(text: string, args: Record<string, { equals?: unknown; matches?: string }> = {}): RuleSource {
  const deny = text.startsWith("!");
  const pattern = deny ? text.slice(1) : text;
  const constraints = Object.entries(args).map(([field, test]) =>
    "matches" in test
      ? { field, operator: "matches" as const, value: test.matches }
      : { field, operator: "equals" as const, value: test.equals },
  );
  return { pattern, action: deny ? "deny" : "allow", rule_id: text, constraints };
}
const verdict = (rules: readonly RuleSource[], id: string, args: Record<string, unknown> = {}) =>
  decide(compileRules(rules), id, args).decision;

describe("ids", () => {
  test.each([
    ["the exact id", "shell::exec", "shell::exec", "allow"],
    ["another case", "shell::exec", "Shell::exec", "needs_approval"],
    ["a trailing separator", "a::b", "a::b::", "needs_approval"],
    ["a trailing space", "a::b", "a::b ", "needs_approval"],
    ["an escaped character", "a::b", "a%3A%3Ab", "needs_approval"],
    ["a regex character is itself", "a.b", "axb", "needs_approval"],
    ["a star crosses ::", "shell::*", "shell::sub::run", "allow"],
    ["a star may stand for nothing", "shell::*", "shell::", "allow"],
    ["a pattern is anchored at its start", "shell::*", "my-shell::x", "needs_approval"],
    ["a pattern is anchored at its end", "*::get", "state::get_with_rev", "needs_approval"],
    ["prefix and suffix may not overlap", "aba*ba", "aba", "needs_approval"],
    ["a star crosses a line break", "a*b", "a\nb", "allow"],
    ["a lone star is everything", "*", "anything", "allow"],
  ])("%s", (_title, pattern, id, expected) => {
    expect(verdict([rule(pattern)], id)).toBe(expected);
  });
});

describe("order", () => {
  test("no match asks", () => expect(verdict([], "x")).toBe("needs_approval"));
  test("the first match decides", () => {
    expect(verdict([rule("!shell::*"), rule("shell::fs::ls")], "shell::fs::ls")).toBe("deny");
    expect(verdict([rule("shell::fs::ls"), rule("!shell::*")], "shell::fs::ls")).toBe("allow");
  });
  test("a rule whose constraint fails is skipped", () => {
    const rules = [rule("!x", { path: { matches: "^/etc" } }), rule("x")];
    expect(verdict(rules, "x", { path: "/etc/passwd" })).toBe("deny");
    expect(verdict(rules, "x", { path: "/tmp" })).toBe("allow");
  });
});

describe("constraints", () => {
  test.each([
    ["equals, same text", { equals: "ls" }, { c: "ls" }, "allow"],
    ["equals, longer text", { equals: "ls" }, { c: "ls; id" }, "needs_approval"],
    ["equals, missing", { equals: "ls" }, {}, "needs_approval"],
    ["equals null is not missing", { equals: null }, {}, "needs_approval"],
    ["equals, nested, other key order", { equals: { a: [1, { b: 2, c: 3 }] } }, { c: { a: [1, { c: 3, b: 2 }] } }, "allow"],
    ["equals, an array is not an object", { equals: [] }, { c: {} }, "needs_approval"],
    ["equals, number is not text", { equals: 1 }, { c: "1" }, "needs_approval"],
    ["equals, a key more", { equals: { a: 1 } }, { c: { a: 1, b: 2 } }, "needs_approval"],
    ["matches is unanchored", { matches: "work" }, { c: "/workspace/x" }, "allow"],
    ["matches, missing", { matches: ".*" }, {}, "needs_approval"],
    ["matches, not a text", { matches: ".*" }, { c: ["a"] }, "needs_approval"],
    ["matches, too long to judge", { matches: "a" }, { c: "a".repeat(MAX_MATCHED_LENGTH + 1) }, "needs_approval"],
    ["inherited names are missing", { equals: "x" }, Object.create({ c: "x" }), "needs_approval"],
  ])("%s", (_title, constraint, args, expected) => {
    expect(verdict([rule("f", { c: constraint })], "f", args)).toBe(expected);
  });

  test("a denial names its first constraint by field name", () => {
    const set = compileRules([rule("!f", { z: { equals: 1 }, a: { matches: "x" } })]);
    expect(decide(set, "f", { z: 1, a: "x" })).toEqual({
      decision: "deny",
      rule_id: "!f",
      rule_action: "deny",
      matched_constraint: { field: "a", operator: "matches", value: "x" },
    });
  });
  test("an allow carries its rule and nothing else", () => {
    expect(decide(compileRules([rule("f", { a: { equals: 1 } })]), "f", { a: 1 })).toEqual({ decision: "allow", rule_id: "f" });
  });
  test("changing an argument's shape does not get past a denial", () => {
    const rules = [rule("!read", { path: { matches: "^/etc" } }), rule("read")];
    for (const path of [["/etc/passwd"], { toString: "/etc" }, 7, "x".repeat(MAX_MATCHED_LENGTH + 1)]) {
      expect(verdict(rules, "read", { path })).toBe("needs_approval");
    }
  });
  test("a pattern that blocks a backtracking engine answers at once", () => {
    const started = performance.now();
    expect(verdict([rule("f", { c: { matches: "^(a+)+$" } })], "f", { c: `${"a".repeat(20_000)}!` })).toBe("needs_approval");
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});

describe("ids for people only", () => {
  test.each([
    ["approval::resolve", true],
    ["approval::list_pending", false],
    ["policy::check_permissions", true],
    ["auth::get_token", true],
    ["run::start", true],
    ["turn::step", true],
    ["turn::get_state", false],
    ["budget::update", true],
    ["budget::get", false],
    ["worker::stop", true],
    ["worker::list", false],
    ["configuration::set", true],
    ["harness::trigger", true],
    ["ui::subscribe", true],
    ["Approval::resolve", false],
    ["shell::exec", false],
  ])("%s: %s", (id, expected) => expect(isClosedToAgents(id)).toBe(expected));
});

const piece = fc.constantFrom("a", "b", "::", "*", ".", "ab", "\n");
const patternArb = fc.array(piece, { maxLength: 6 }).map((parts) => parts.join(""));
const idArb = fc.array(fc.constantFrom("a", "b", "::", ".", "ab", "\n"), { maxLength: 6 }).map((parts) => parts.join(""));

function referenceMatches(pattern: string, id: string): boolean {
  const escaped = pattern.split("*").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${escaped.join("[^]*")}$`).test(id);
}

test("property: globs agree with a reference matcher", () => {
  fc.assert(
    fc.property(patternArb, idArb, (pattern, id) => {
      expect(compileGlob(pattern)(id)).toBe(referenceMatches(pattern, id));
    }),
    { numRuns: 2_000 },
  );
});

interface Spec {
  readonly deny: boolean;
  readonly field: "x" | "y" | undefined;
  readonly value: string;
}

/** An allow rule with a constraint allows the arguments that it names. */
function holds({ deny, field, value }: Spec, args: { x?: string; y?: string }): boolean {
  if (field === undefined) return true;
  return args[field] === value && (deny || Object.keys(args).every((name) => name === field));
}

test("property: the first matching rule decides", () => {
  const ruleArb = fc.record({
    deny: fc.boolean(),
    pattern: patternArb,
    field: fc.constantFrom(undefined, "x", "y"),
    value: fc.constantFrom("1", "2"),
  });
  const argsArb = fc.record({ x: fc.constantFrom("1", "2"), y: fc.constantFrom("1", "2") }, { requiredKeys: [] });
  fc.assert(
    fc.property(fc.array(ruleArb, { maxLength: 8 }), idArb, argsArb, (specs, id, args) => {
      const rules = specs.map(
        ({ deny, pattern, field, value }): RuleSource => ({
          pattern,
          action: deny ? "deny" : "allow",
          rule_id: "r",
          constraints: field === undefined ? [] : [{ field, operator: "equals", value }],
        }),
      );
      const first = specs.find((s) => referenceMatches(s.pattern, id) && holds(s, args));
      const expected = first === undefined ? "needs_approval" : first.deny ? "deny" : "allow";
      expect(verdict(rules, id, args)).toBe(expected);
    }),
    { numRuns: 2_000 },
  );
});
