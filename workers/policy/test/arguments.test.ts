// Arguments are judged in the form in which they will be used, all of them, or the call asks.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { testBus } from "@iii/engine/testing";
import { defineFunction, defineWorker } from "@iii/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { checkPermissions } from "../src/contract.ts";
import { loadRules } from "../src/load.ts";
import { type Declared, declaredArguments, normalArgument } from "../src/normal-form.ts";
import { worker } from "../src/register.ts";
import { decide } from "../src/rules.ts";

const READ: Declared = { path: "path" };
const EXEC: Declared = { command: "command", args: "arguments", cwd: "path", stdin: "input" };

/** Decides with one allow rule (and, with `deny`, a denial before an allow for all). */
function allowing(args: string, call: Record<string, unknown>, declared?: Declared) {
  return decision(`rules:\n  - function: f\n    action: allow\n    args: ${args}\n`, call, declared);
}
function denying(args: string, call: Record<string, unknown>, declared?: Declared) {
  return decision(`rules:\n  - function: f\n    action: deny\n    args: ${args}\n  - f\n`, call, declared);
}
function decision(text: string, call: Record<string, unknown>, declared?: Declared) {
  const loaded = loadRules(text);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
  return decide(loaded.rules, "f", call, declared).decision;
}

describe("a path is judged in its normal form", () => {
  test.each([
    ["as it is", "docs/a.md", "allow"],
    ["a dot in front", "./docs/a.md", "allow"],
    ["doubled slashes", "docs//a.md", "allow"],
    ["dots and slashes", ".//docs/./sub//a.md", "allow"],
    ["out and back", "docs/../docs/a.md", "allow"],
    ["a slash behind", "docs/sub/", "allow"],
    ["out by dots", "docs/../secret.txt", "needs_approval"],
    ["out by dots, later", "docs/sub/../../secret.txt", "needs_approval"],
    ["out by dots, hidden among others", "docs/./../secret.txt", "needs_approval"],
    ["above the root", "../docs/a.md", "needs_approval"],
    ["far above the root", "docs/../../docs/a.md", "needs_approval"],
    ["dots at the end", "docs/..", "needs_approval"],
    ["escaped dots", "docs/%2e%2e/secret.txt", "needs_approval"],
    ["escaped dots, other case", "docs/%2E%2e/secret.txt", "needs_approval"],
    ["half escaped dots", "docs/.%2e/secret.txt", "needs_approval"],
    ["an escaped slash", "docs%2f..%2fsecret.txt", "needs_approval"],
    ["escaped twice", "docs/%252e%252e/secret.txt", "needs_approval"],
    ["an escaped NUL", "docs/a%00.md", "needs_approval"],
    ["a NUL", "docs/a\0../secret.txt", "needs_approval"],
    ["a backslash", "docs\\..\\secret.txt", "needs_approval"],
    ["a backslash behind", "docs/..\\secret.txt", "needs_approval"],
    ["a line break", "docs/a\n../secret", "needs_approval"],
    ["a trailing dot", "docs./a.md", "needs_approval"],
    ["a trailing space", "docs /a.md", "needs_approval"],
    ["three dots", "docs/.../a.md", "needs_approval"],
    ["another case", "DOCS/a.md", "needs_approval"],
    ["a look-alike letter", "d\u043ecs/a.md", "needs_approval"],
    ["a wide slash", "docs/a\uff0f..\uff0fsecret", "needs_approval"],
    ["a division slash", "docs/a\u2215..\u2215secret", "needs_approval"],
    ["one dot leaders", "docs/\u2024\u2024/secret", "needs_approval"],
    ["a two dot leader", "docs/\u2025/secret", "needs_approval"],
    ["a zero-width space", "docs/.\u200b./secret", "needs_approval"],
    ["a mark that turns text around", "docs/\u202ex", "needs_approval"],
    ["half of a pair", "docs/\ud800", "needs_approval"],
    ["letters that are not composed", "docs/e\u0301", "needs_approval"],
    ["a drive", "C:/docs/a", "needs_approval"],
    ["a scheme", "file:///docs/a", "needs_approval"],
    ["a stream of a file", "docs/a.md::$DATA", "needs_approval"],
    ["a home folder", "~/docs/a", "needs_approval"],
    ["an absolute path", "/docs/a.md", "needs_approval"],
    ["/proc/self/environ", "/proc/self/environ", "needs_approval"],
    ["nothing", "", "needs_approval"],
    ["too long", `docs/${"a".repeat(5_000)}`, "needs_approval"],
    ["a list with one path outside", ["docs/a", "docs/../b"], "needs_approval"],
    ["a number", 7, "needs_approval"],
    ["an object", { toString: "docs/a" }, "needs_approval"],
    ["null", null, "needs_approval"],
  ])("K7.5 allow ^docs/, %s: %j %s", (_title, path, expected) => {
    expect(allowing("{ path: { matches: '^docs/' } }", { path }, READ)).toBe(expected);
  });

  test.each([
    ["as it is", "secret/a", "deny"],
    ["over dots", "docs/../secret/a", "deny"],
    ["doubled slashes", ".//secret//a", "deny"],
    ["escaped", "%73ecret/../secret%2fa", "needs_approval"],
    ["another case", "Secret/a", "needs_approval"],
    ["wide letters", "\uff53ecret/a", "needs_approval"],
    ["backslashes", "x\\..\\secret\\a", "needs_approval"],
    ["a trailing dot", "secret./a", "needs_approval"],
    ["a list", ["secret/a"], "needs_approval"],
    ["another path", "docs/a", "allow"],
  ])("case 92 deny ^secret/ before an allow, %s: %j %s", (_title, path, expected) => {
    expect(denying("{ path: { matches: '^secret/' } }", { path }, READ)).toBe(expected);
  });

  test.each([
    ["docs/a", "./docs//a", "allow"],
    ["./docs/a", "docs/a", "allow"],
    ["docs/a/", "docs/a", "allow"],
    [".", "./", "allow"],
    ["docs/a", "docs/b/../a", "allow"],
    ["docs/a", "docs/a/..", "needs_approval"],
  ])("K7.5 equals %j, path %j: %s", (equals, path, expected) => {
    expect(allowing(`{ path: { equals: '${equals}' } }`, { path }, READ)).toBe(expected);
  });

  test("K7.5 a list of paths is judged one by one", () => {
    const rule = "{ path.every: { matches: '^docs/' } }";
    expect(allowing(rule, { path: ["docs/a", "./docs/b"] }, READ)).toBe("allow");
    expect(allowing(rule, { path: ["docs/a", "docs/../b"] }, READ)).toBe("needs_approval");
  });

  test("property: a normal form is that of the file system, and its own normal form", () => {
    const part = fc.constantFrom("a", "b.md", ".", "..", "", "c d", ".x");
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), fc.boolean(), (parts, absolute) => {
        const given = (absolute ? "/" : "") + parts.join("/");
        const normal = normalArgument("path", given);
        const reference = posix.normalize(given).replace(/(?<=.)\/$/, "");
        if (!normal.clear) {
          expect(parts).toContain("..");
          return;
        }
        expect(normal.value).toBe(reference);
        expect(normalArgument("path", normal.value)).toEqual(normal);
      }),
    );
  });
});

describe("a rule that allows speaks of every argument", () => {
  const git = "{ command: { equals: git } }";
  test.each([
    ["the command alone", git, { command: "git" }, "allow"],
    ["an empty list", git, { command: "git", args: [] }, "allow"],
    ["what the function does not declare", git, { command: "git", timeout_ms: 5 }, "allow"],
    ["arguments", git, { command: "git", args: ["status"] }, "needs_approval"],
    ["an alias that runs a shell", git, { command: "git", args: ["-c", "alias.x=!id", "x"] }, "needs_approval"],
    ["a folder", git, { command: "git", cwd: "evil" }, "needs_approval"],
    ["input", git, { command: "git", stdin: "x" }, "needs_approval"],
    ["arguments of another shape", git, { command: "git", args: "status" }, "needs_approval"],
    ["the whole list", "{ command: { equals: git }, args: { equals: [status] } }", { command: "git", args: ["status"] }, "allow"],
    [
      "the whole list and more",
      "{ command: { equals: git }, args: { equals: [status] } }",
      { command: "git", args: ["status", "-s"] },
      "needs_approval",
    ],
    ["no list is the empty list", "{ command: { equals: git }, args: { equals: [] } }", { command: "git" }, "allow"],
    ["the first", "{ command: { equals: git }, args.0: { equals: status } }", { command: "git", args: ["status"] }, "allow"],
    [
      "the first, and a second that nobody named",
      "{ command: { equals: git }, args.0: { equals: status } }",
      { command: "git", args: ["status", "--x"] },
      "needs_approval",
    ],
    [
      "the first and the second",
      "{ command: { equals: git }, args.0: { equals: log }, args.1: { matches: '^-[0-9]+$' } }",
      { command: "git", args: ["log", "-3"] },
      "allow",
    ],
    [
      "the second before the first",
      "{ command: { equals: git }, args.0: { equals: log }, args.1: { matches: '^-[0-9]+$' } }",
      { command: "git", args: ["-3", "log"] },
      "needs_approval",
    ],
    ["every one", "{ command: { equals: ls }, args.every: { matches: '^-[la]+$' } }", { command: "ls", args: ["-l", "-a"] }, "allow"],
    ["every one of none", "{ command: { equals: ls }, args.every: { matches: '^-[la]+$' } }", { command: "ls" }, "allow"],
    [
      "every one but the last",
      "{ command: { equals: ls }, args.every: { matches: '^-[la]+$' } }",
      { command: "ls", args: ["-l", "/etc"] },
      "needs_approval",
    ],
    [
      "any is not every",
      "{ command: { equals: ls }, args.any: { equals: '-l' } }",
      { command: "ls", args: ["-l", "/etc"] },
      "needs_approval",
    ],
    ["whatever they are", "{ command: { equals: ls }, args: { anything: true } }", { command: "ls", args: ["-l", "/etc"] }, "allow"],
    [
      "an element that is no text",
      "{ command: { equals: ls }, args: { anything: true } }",
      { command: "ls", args: [["x"]] },
      "needs_approval",
    ],
    ["an element with a NUL", "{ command: { equals: ls }, args: { anything: true } }", { command: "ls", args: ["a\0b"] }, "needs_approval"],
    ["an empty element", git, { command: "git", args: [""] }, "needs_approval"],
    [
      "a path among them that leads out",
      "{ command: { equals: cat }, args.every: { matches: '^docs/' } }",
      { command: "cat", args: ["docs/../x"] },
      "needs_approval",
    ],
    [
      "a name with a dot is no way in",
      "{ command: { equals: git }, args.0: { equals: status } }",
      { command: "git", "args.0": "status", args: ["x"] },
      "needs_approval",
    ],
    ["the folder is named too", "{ command: { equals: git }, cwd: { equals: repo } }", { command: "git", cwd: "./repo/" }, "allow"],
    [
      "the folder leads out",
      "{ command: { equals: git }, cwd: { matches: '^repo' } }",
      { command: "git", cwd: "repo/../.." },
      "needs_approval",
    ],
    ["a command by its path", git, { command: "./git" }, "needs_approval"],
    ["a command by another path", git, { command: "bin/../git" }, "needs_approval"],
    ["a command with its arguments", "{ command: { matches: '^git' } }", { command: "git status; id" }, "needs_approval"],
    ["a command line", "{ command: { matches: '^git' } }", { command: "git\nid" }, "needs_approval"],
    ["a command with $()", "{ command: { matches: '^git' } }", { command: "git$(id)" }, "needs_approval"],
  ])("K7.5 %s: %s %j %s", (_title, rule, call, expected) => expect(allowing(rule, call, EXEC)).toBe(expected));

  test.each([
    ["named", "{ city: { equals: Oslo } }", { city: "Oslo" }, "allow"],
    ["one more", "{ city: { equals: Oslo } }", { city: "Oslo", callback: "http://x" }, "needs_approval"],
    ["one more that is empty", "{ city: { equals: Oslo } }", { city: "Oslo", units: null, tags: [], note: "" }, "allow"],
    ["one more that may be anything", "{ city: { equals: Oslo }, units: { anything: true } }", { city: "Oslo", units: "c" }, "allow"],
    ["an object in part", "{ o.a: { equals: 1 } }", { o: { a: 1, b: 2 } }, "needs_approval"],
    ["an object in whole", "{ o.a: { equals: 1 }, o.b: { equals: 2 } }", { o: { a: 1, b: 2 } }, "allow"],
    ["a path that nobody declared, over dots", "{ path: { matches: '^docs/' } }", { path: "docs/../x" }, "needs_approval"],
    ["a path that nobody declared, escaped", "{ path: { matches: '^docs/' } }", { path: "docs/%2e%2e/x" }, "needs_approval"],
    ["a path that nobody declared, with a NUL", "{ path: { matches: '^docs/' } }", { path: "docs/\0" }, "needs_approval"],
    ["a path that nobody declared", "{ path: { matches: '^docs/' } }", { path: "docs/x" }, "allow"],
  ])("K7.5 of a function that declares nothing, %s: %s %j %s", (_title, rule, call, expected) =>
    expect(allowing(rule, call)).toBe(expected),
  );

  test.each([
    ["any of them", "{ args.any: { equals: '-c' } }", { command: "git", args: ["x", "-c", "y"] }, "deny"],
    ["none of them", "{ args.any: { equals: '-c' } }", { command: "git", args: ["x"] }, "allow"],
    ["a text for the list", "{ args.any: { equals: '-c' } }", { command: "git", args: "-c" }, "needs_approval"],
    ["a list in the list", "{ args.any: { equals: '-c' } }", { command: "git", args: [["-c"]] }, "needs_approval"],
    ["a text where the list was meant", "{ args: { equals: '-c' } }", { command: "git", args: ["-c"] }, "needs_approval"],
    ["a list where a text was meant", "{ command: { equals: [rm] } }", { command: "rm" }, "needs_approval"],
    ["the command", "{ command: { equals: rm } }", { command: "rm", args: ["-rf"] }, "deny"],
    ["the command by its path", "{ command: { equals: rm } }", { command: "/bin/rm" }, "needs_approval"],
    ["the command in another case", "{ command: { equals: rm } }", { command: "RM" }, "needs_approval"],
    ["the command in a list", "{ command: { equals: rm } }", { command: ["rm"] }, "needs_approval"],
    ["a command line", "{ command: { equals: rm } }", { command: "true; rm" }, "needs_approval"],
    ["another command", "{ command: { equals: rm } }", { command: "ls" }, "allow"],
    ["that it is there at all", "{ stdin: { anything: true } }", { command: "sh", stdin: "x" }, "deny"],
    ["that it is there, and it is not", "{ stdin: { anything: true } }", { command: "sh" }, "allow"],
  ])("K7.5 a denial before an allow for all, %s: %s %j %s", (_title, rule, call, expected) =>
    expect(denying(rule, call, EXEC)).toBe(expected),
  );
});

test.each([
  ["none", {}, undefined],
  ["null", null, undefined],
  ["a list", { arguments: ["path"] }, undefined],
  ["a kind that is not known", { arguments: { a: "url" } }, undefined],
  ["an inherited one", Object.create({ arguments: { a: "path" } }), undefined],
  ["an empty one", { arguments: {} }, {}],
  ["one", { arguments: { a: "path" } }, { a: "path" }],
])("K7.5 a declaration that is not understood is none: %s", (_title, metadata, expected) =>
  expect(declaredArguments(metadata)).toEqual(expected),
);

test("K7.5 what a function declares in its registration is what its calls are judged by", async () => {
  const root = await mkdtemp(join(tmpdir(), "policy-"));
  const text = "rules:\n  - function: files::*\n    action: allow\n    args: { path: { matches: '^docs/' } }\n";
  await writeFile(join(root, "iii-permissions.yaml"), text);
  const input = z.object({ path: z.string(), depth: z.number().optional() });
  const declared = defineFunction({ id: "files::declared", about: "x", input, output: z.null(), arguments: { path: "path" } });
  const silent = defineFunction({ id: "files::silent", about: "x", input, output: z.null() });
  const files = defineWorker({
    name: "files",
    config: z.object({}),
    register(on) {
      on(declared, () => null);
      on(silent, () => null);
    },
  });
  {
    await using bus = await testBus([worker, files], { root });
    const decide = async (function_id: string, args: Record<string, unknown>) =>
      (await bus.call(checkPermissions, { function_id, args })).decision;
    expect(await decide(declared.id, { path: ".//docs/a", depth: 2 })).toBe("allow");
    expect(await decide(declared.id, { path: "docs/../a" })).toBe("needs_approval");
    expect(await decide(silent.id, { path: "docs/a" })).toBe("allow");
    expect(await decide(silent.id, { path: ".//docs/a" })).toBe("needs_approval");
    expect(await decide(silent.id, { path: "docs/a", depth: 2 })).toBe("needs_approval");
    expect(await decide("files::nobody", { path: "docs/a", depth: 2 })).toBe("needs_approval");
  }
  await rm(root, { recursive: true });
});
