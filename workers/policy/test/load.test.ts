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

  test.each(["", "# only a comment", "version: 1", "version: 1\nrules:", "version: 1\nrules: []"])("no rules: %j", (text) => {
    expect(rulesOf(text).rules).toEqual([]);
  });
  test("an unknown key and a double rule_id are warnings", () => {
    const loaded = loadRules("rules:\n  - { function: a, action: allow, arg: {} }\n  - a\n");
    expect(loaded.ok).toBe(true);
    expect(loaded.warnings.map(({ line, message }) => `${line} ${message}`)).toEqual([
      "2 unknown key 'arg' is ignored",
      "3 rule_id 'a' is used twice",
    ]);
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
  test("a broken change keeps the last good rules", async () => {
    await writeFile(path, "rules: [x]");
    await file.open();
    await writeFile(path, "rules: [x");
    await file.reload();
    expect(decision()).toBe("allow");
  });
  test("a broken file at boot refuses with file:line:column", async () => {
    await writeFile(path, "rules:\n  - 7\n");
    await expect(file.open()).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining(`${path}:2:5: `) });
  });
});
