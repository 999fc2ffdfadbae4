// Reading the permissions file: shapes, faults with their places, and following changes on disk.
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger, systemClock } from "@iii/sdk";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PermissionsFile } from "../src/file.ts";
import { loadRules } from "../src/load.ts";
import { decide } from "../src/rules.ts";

function rulesOf(text: string) {
  const loaded = loadRules(text);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
  return loaded.rules;
}

function faultsOf(text: string): string[] {
  const loaded = loadRules(text);
  return loaded.ok ? [] : loaded.faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

describe("what may be written", () => {
  const rules = rulesOf(`
version: 1
rules:
  - '!state::set'
  - models::list
  - function: shell::exec
    action: allow
    rule_id: safe-ls
    args:
      command: { equals: ls }
      path: { matches: '^/workspace/' }
`);
  test.each([
    ["deny shorthand", "state::set", {}, { decision: "deny", rule_id: "state::set", rule_action: "deny" }],
    ["bare text allows", "models::list", {}, { decision: "allow", rule_id: "models::list" }],
    ["object with constraints", "shell::exec", { command: "ls", path: "/workspace/a" }, { decision: "allow", rule_id: "safe-ls" }],
    ["all constraints must hold", "shell::exec", { command: "ls", path: "/etc" }, { decision: "needs_approval" }],
  ])("%s", (_title, id, args, expected) => expect(decide(rules, id, args)).toEqual(expected));

  test("no rules is said in words: an empty list", () => {
    expect(rulesOf("version: 1\nrules: []").rules).toEqual([]);
  });
  test.each([
    [
      "a rule_id used twice",
      "rules:\n  - { function: a, action: deny, args: { x: { equals: 1 } } }\n  - a\n",
      "3 rule_id 'a' is used twice",
    ],
    ["a single colon", "rules:\n  - 'state:set'\n", "2 'state:set' has a single colon; was 'state::set' meant?"],
    [
      "an expression without ^ in an allow rule",
      "rules:\n  - { function: a, action: allow, args: { x: { matches: docs/ } } }\n",
      "2 `matches` of 'x': without ^ it holds anywhere in the text",
    ],
  ])("a warning, and in force: %s", (_title, text, expected) => {
    const loaded = loadRules(text);
    expect(loaded.ok).toBe(true);
    expect(loaded.warnings.map(({ line, message }) => `${line} ${message}`)).toEqual([expected]);
  });
});

describe("faults", () => {
  test.each([
    ["not a map", "- a", "1:1 expected a map"],
    ["wrong version", "version: 2", "1:10 `version` must be 1"],
    ["rules not a list", "rules: x", "1:8 `rules` must be a list"],
    ["lone !", "rules:\n  - '!'", "2:5 '!' needs a function pattern"],
    ["unquoted !", "rules:\n  - !state::set", "2:5"],
    ["no function", "rules:\n  - action: allow", "2:5 a rule needs `function`"],
    ["no action", "rules:\n  - function: a", "2:5 `action` must be allow or deny"],
    ["ask is no action", "rules:\n  - function: a\n    action: ask", "3:13 `action` must be allow or deny"],
    ["bad regex", "rules:\n  - function: a\n    action: allow\n    args: { x: { matches: '(' } }", "4:27 `matches` of 'x'"],
    ["backreference", "rules:\n  - function: a\n    action: allow\n    args: { x: { matches: '(a)\\1' } }", "4:27 `matches` of 'x'"],
    [
      "unknown constraint",
      "rules:\n  - function: a\n    action: allow\n    args: { x: { starts: a } }",
      "4:26 unknown constraint 'starts'",
    ],
    ["constraint without a test", "rules:\n  - function: a\n    action: allow\n    args: { x: 1 }", "4:16 argument 'x' needs"],
    ["a number for a rule", "rules:\n  - 7", "2:5 a rule is"],
    ["not YAML", "rules: [", "1:"],
    ["the same key twice", "version: 1\nversion: 1", "2:1 Map keys must be unique"],
  ])("%s", (_title, text, start) => {
    const loaded = loadRules(text);
    expect(loaded.ok).toBe(false);
    const first = loaded.ok ? undefined : loaded.faults[0];
    expect(`${first?.line}:${first?.column} ${first?.message}`).toContain(start);
  });
  const allow = (args: string) => `rules:\n  - function: a::b\n    action: allow\n    ${args}\n`;
  test.each([
    ["arg for args", allow("arg: { x: { equals: 1 } }"), "4:5 unknown key 'arg' (did you mean 'args'?)"],
    ["ars for args", allow("ars: { x: { equals: 1 } }"), "4:5 unknown key 'ars' (did you mean 'args'?)"],
    ["Args for args", allow("Args: { x: { equals: 1 } }"), "4:5 unknown key 'Args' (did you mean 'args'?)"],
    ["constraints for args", allow("constraints: { x: { equals: 1 } }"), "4:5 unknown key 'constraints'"],
    ["equal for equals", allow("args: { x: { equal: 1 } }"), "4:25 unknown constraint 'equal' on 'x' (did you mean 'equals'?)"],
    ["match for matches", allow("args: { x: { match: ^a } }"), "4:25 unknown constraint 'match' on 'x' (did you mean 'matches'?)"],
    ["rule for rules", "rule:\n  - a", "1:1 unknown key 'rule' (did you mean 'rules'?)"],
    ["a key beside rules", "rules: []\ndefault: allow", "2:1 unknown key 'default'"],
    ["a merge key", "rules:\n  - <<: { function: a }\n    action: allow", "2:5 unknown key '<<'"],
    ["args one level too far left", allow("args:\n    x: { equals: 1 }"), "4:10 a value is missing"],
    ["a rule written as a map", "rules:\n  - shell::exec: allow", "2:5 unknown key 'shell::exec'"],
  ])("K7.4 an unknown key is a fault at its place: %s", (_title, text, start) =>
    expect(faultsOf(text)).toContainEqual(expect.stringContaining(start)),
  );

  test.each([
    ["empty args", allow("args: {}"), "4:11 `args` must be a map of argument names"],
    ["args left empty", allow("args:"), "4:10 a value is missing"],
    ["args null", allow("args: null"), "4:11 `args` must be a map"],
    ["args ~", allow("args: ~"), "4:11 `args` must be a map"],
    ["args a list", allow("args: [x]"), "4:11 `args` must be a map"],
    ["args a text", allow("args: x"), "4:11 `args` must be a map"],
    ["a constraint without value", allow("args: { x: }"), "4:1"],
    ["a constraint that is empty", allow("args: { x: {} }"), "argument 'x' needs"],
    ["equals left empty", allow("args: { x: { equals: } }"), "4:26 a value is missing"],
    ["equals without colon", allow("args: { x: { equals } }"), "'equals' has no value"],
    ["matches null", allow("args: { x: { matches: null } }"), "`matches` of 'x' must be a text"],
    ["matches a number", allow("args: { x: { matches: 7 } }"), "`matches` of 'x' must be a text"],
    ["matches true", allow("args: { x: { matches: true } }"), "`matches` of 'x' must be a text"],
    ["matches a list", allow("args: { x: { matches: ['^a'] } }"), "`matches` of 'x' must be a text"],
    ["anything: false", allow("args: { x: { anything: false } }"), "`anything` can only be true"],
    ["no name", allow("args: { '': { equals: 1 } }"), "'' names no argument"],
    ["an empty step", allow("args: { a..b: { equals: 1 } }"), "'a..b' names no argument"],
    ["a name with a space", allow("args: { 'a ': { equals: 1 } }"), "'a ' names no argument"],
    ["a number for a name", allow("args: { 0: { equals: 1 } }"), "4:13 a key must be a text; quote it"],
    ["a list for a name", "rules:\n  - ? [a]\n    : b", "a key must be a text"],
    ["the same key twice", allow("args: { x: { equals: 1 } }\n    args: { y: { equals: 1 } }"), "5:5 Map keys must be unique"],
    ["the same test twice", allow("args: { x: { equals: 1, equals: 2 } }"), "Map keys must be unique"],
    ["function a list", "rules:\n  - { function: [a, b], action: allow }", "2:17 `function` must be one pattern"],
    ["function a number", "rules:\n  - { function: 7, action: allow }", "2:17 `function` must be one pattern"],
    ["function true", "rules:\n  - { function: true, action: allow }", "`function` must be one pattern"],
    ["function null", "rules:\n  - { function: null, action: allow }", "`function` must be one pattern"],
    ["function empty", "rules:\n  - { function: '', action: allow }", "a rule needs `function`"],
    ["a denial with allow", "rules:\n  - { function: '!a', action: allow }", "2:17 '!a': a denial is written"],
    ["action a list", "rules:\n  - { function: a, action: [allow] }", "`action` must be allow or deny"],
    ["Allow", "rules:\n  - { function: a, action: Allow }", "`action` must be allow or deny"],
    ["true for a rule", "rules:\n  - true", "2:5 a rule is"],
    ["null for a rule", "rules:\n  - null", "2:5 a rule is"],
    ["an empty rule", "rules:\n  -\n  - a", "2:4"],
    ["a list for a rule", "rules:\n  - [a]", "2:5 a rule is"],
    ["rule_id null", "rules:\n  - { function: a, action: allow, rule_id: null }", "`rule_id` must be a non-empty text"],
    ["version as a text", "version: '1'\nrules: []", "`version` must be 1"],
    ["rules a map", "rules: { a: allow }", "1:8 `rules` must be a list"],
    ["rules null", "rules: null", "1:8 `rules` must be a list"],
  ])("K7.4 a slip is a fault, not a wider rule: %s", (_title, text, start) =>
    expect(faultsOf(text)).toContainEqual(expect.stringContaining(start)),
  );

  test.each([
    ["an anchor", "rules:\n  - &a models::list", "anchors (&a) are not read"],
    ["an alias", "rules:\n  - &a models::list\n  - *a", "3:5 aliases are not read"],
    ["a star without quotes", "rules:\n  - *", "2:5"],
    ["a tag", "rules:\n  - !!str a", "2:5 tags (!!…) are not read"],
    ["a directive", "%YAML 1.1\n---\nrules: [yes]", "1:1 directives are not read"],
    ["two documents", "rules: [a]\n---\nrules: []", "2:1"],
    ["a tab for an indent", "rules:\n\t- a", "2:1 Tabs are not allowed"],
    ["a tab in a text", "rules:\n  - a\tb", "an invisible character (U+0009)"],
    ["a zero-width space", "rules:\n  - '!state::set\u200b'", "an invisible character (U+200B)"],
    ["a space that does not break", "rules:\n  - '!state::set\u00a0'", "an invisible character (U+00A0)"],
    ["a mark that turns text around", "rules:\n  - '!state::\u202etes'", "an invisible character (U+202E)"],
    ["an octal number", allow("args: { x: { equals: 010 } }"), "'010' is read as the number 10"],
    ["a hexadecimal number", allow("args: { x: { equals: 0x10 } }"), "'0x10' is read as the number 16"],
    ["a number too long to keep", allow("args: { x: { equals: 12345678901234567890 } }"), "is read as the number 12345678901234567000"],
    ["infinity", allow("args: { x: { equals: .inf } }"), "is read as the number Infinity"],
    ["a text of two lines", allow("args: { x: { equals: a\n      b } }"), "a text must stand on one line"],
    ["a block text", allow("args:\n      x:\n        matches: |\n          ^docs/"), "a text must stand on one line"],
    ["a comment that cuts an expression", allow("args:\n      x:\n        matches: ^docs/ #readme"), "what stands behind # is a comment"],
    ["a double-quoted expression that loses its backslash", allow('args: { x: { matches: "^a\\b" } }'), "an invisible character (U+0008)"],
    ["thousands of levels", `rules: ${"[".repeat(20_000)}`, "1:"],
  ])("K7.4 YAML that means another thing than it shows is a fault: %s", (_title, text, start) =>
    expect(faultsOf(text)).toContainEqual(expect.stringContaining(start)),
  );

  test.each([
    ["empty", "''"],
    ["everything", "'.*'"],
    ["anything at all", "."],
    ["something", "'.+'"],
    ["only a beginning", "^"],
    ["only an end", "$"],
    ["an optional text", "'a?'"],
    ["an empty alternative", "'^docs/|'"],
    ["everything, with flags", "'(?is)^.*$'"],
    ["an alternative that is everything", "'^docs/|.*'"],
    ["an unanchored alternative", "'^docs/|notes/'"],
    ["an unanchored alternative in front", "'a|^b'"],
    ["an unanchored alternative in a group", "'(^docs/|notes/)x|^y'"],
    ["the flag m", "'(?m)^docs/'"],
    ["the flag m among others", "'(?im:^docs/)'"],
  ])("K7.4 an expression of an allow rule that holds by accident is a fault: %s", (_title, pattern) =>
    expect(faultsOf(allow(`args: { x: { matches: ${pattern} } }`))).toEqual([expect.stringContaining("4:27 `matches` of 'x'")]),
  );
  test.each([
    "'^docs/'",
    "'^(?:docs|notes)/'",
    "'^docs/|^notes/'",
    "'(^a|^b)'",
    "'(?i)^docs/'",
    "'^$'",
    "'^a[|]b'",
    "'^a\\|b'",
    "'\\Adocs/'",
    "^docs/",
  ])("an expression that is meant: %s", (pattern) =>
    expect(loadRules(allow(`args: { x: { matches: ${pattern} } }`))).toMatchObject({ ok: true, warnings: [] }),
  );

  test.each([
    ["two entries folded into one", 'rules:\n  - models::list\n    - "!state::set"\n', "2:5 a text must stand on one line"],
    ["an entry that goes on on the next line", "rules:\n  - models::list\n    models::get\n", "2:5 a text must stand on one line"],
    ["a space", "rules:\n  - models::list models::get", "2:5 'models::list models::get' is no function pattern"],
    ["a comma", "rules:\n  - models::list,models::get", "is no function pattern"],
    ["a quote", 'rules:\n  - models::"list"', "is no function pattern"],
    ["a space behind the !", "rules:\n  - '! state::set'", "2:5 ' state::set' is no function pattern"],
    ["a space at the end", "rules:\n  - 'state::set '", "is no function pattern"],
    ["two !", "rules:\n  - '!!state::set'", "'!state::set': a denial is written"],
    ["a regular expression", "rules:\n  - '!state::(set|delete)'", "is no function pattern"],
    ["a question mark", "rules:\n  - '!state::se?'", "is no function pattern"],
    ["a look-alike letter", "rules:\n  - '!st\u0430te::set'", "is no function pattern"],
    ["a wide colon", "rules:\n  - '!state\uff1a\uff1aset'", "is no function pattern"],
    ["a family without its star", "rules:\n  - '!state::'", "'state::' names no function; for all of a family write 'state::*'"],
    ["everything before a denial", "rules:\n  - '*'\n  - '!shell::exec'", "3:5 'shell::exec' is never reached: '*' in line 2"],
    ["a family before a denial of its member", "rules:\n  - shell::*\n  - '!shell::exec'", "3:5 'shell::exec' is never reached"],
    ["a family before a smaller one", "rules:\n  - '!a::*'\n  - a::b::*", "3:5 'a::b::*' is never reached"],
    ["the same rule twice", "rules:\n  - a\n  - a", "3:5 'a' is never reached"],
    [
      "a constrained denial behind an allow",
      "rules:\n  - a\n  - function: a\n    action: deny\n    args: { x: { equals: 1 } }",
      "3:5 'a' is never reached",
    ],
    ["an empty file", "", "1:1 the file holds no rules"],
    ["only a comment", "# - '!a'\n", "1:1 the file holds no rules"],
    ["only a version", "version: 1", "1:1 `rules` is missing"],
    ["rules without a list", "version: 1\nrules:", "a value is missing"],
  ])("U42 told with its place: %s", (_title, text, start) => expect(faultsOf(text)).toContainEqual(expect.stringContaining(start)));
  test.each([
    ["an exception before its family", "rules:\n  - models::list\n  - '!models::*'"],
    ["everything at the end", "rules:\n  - '!shell::exec'\n  - '*'"],
    ["families that only touch", "rules:\n  - a::*\n  - '*::b'"],
    ["a constrained rule before the plain one", "rules:\n  - function: a\n    action: deny\n    args: { x: { equals: null } }\n  - a"],
  ])("U42 no fault: %s", (_title, text) => expect(faultsOf(text)).toEqual([]));

  test("all faults come in one report", () => {
    const loaded = loadRules("rules:\n  - 7\n  - '!'\n  - { function: a }\n");
    expect(loaded.ok ? [] : loaded.faults.map(({ line }) => line)).toEqual([2, 3, 4]);
  });
});

describe("the file on disk", () => {
  let folder: string;
  let path: string;
  let file: PermissionsFile;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "policy-"));
    path = join(folder, "iii-permissions.yaml");
    file = new PermissionsFile(path, { log: silentLogger, clock: systemClock });
  });
  afterEach(async () => {
    await file.close();
    await rm(folder, { recursive: true });
  });
  const decision = () => decide(file.rules, "x", {}).decision;
  const becomes = (expected: string) => expect.poll(decision, { timeout: 5_000, interval: 10 }).toBe(expected);

  test("a missing file asks; a file that appears, is replaced and goes away is followed", async () => {
    await file.open();
    expect(decision()).toBe("needs_approval");
    await writeFile(path, "rules: [x]");
    await becomes("allow");
    await writeFile(join(folder, "new~"), "rules: ['!x']");
    await rename(join(folder, "new~"), path);
    await becomes("deny");
    await rm(path);
    await becomes("needs_approval");
  });
  test.each([
    ["that is not YAML", "rules: [x"],
    ["K7.4 with an unknown key", "rules:\n  - { function: x, action: deny, arg: {} }"],
    ["U42 that is empty", ""],
    ["that is not UTF-8", Buffer.from([0x72, 0xff, 0xfe])],
  ])("a change %s keeps the last good rules", async (_title, text) => {
    await writeFile(path, "rules: [x]");
    await file.open();
    await writeFile(path, text);
    await file.reload();
    expect(decision()).toBe("allow");
  });
  test("a broken file at boot refuses with file:line:column", async () => {
    await writeFile(path, "rules:\n  - 7\n");
    await expect(file.open()).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining(`${path}:2:5: `) });
  });
});
