// The shipped permissions file says what it promises.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { loadRules } from "../src/load.ts";
import { decide } from "../src/rules.ts";

const loaded = loadRules(await readFile(new URL("../../../iii-permissions.yaml", import.meta.url), "utf8"));
if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));

test("it has no warnings", () => expect(loaded.warnings).toEqual([]));
test.each([
  ["approval::resolve", {}, "deny"],
  ["auth::get_token", {}, "deny"],
  ["run::abort", {}, "deny"],
  ["provider::any::stream", {}, "deny"],
  ["session-tree::append", {}, "deny"],
  ["state::transact", {}, "deny"],
  ["publish", {}, "deny"],
  // What is put on a queue runs without being judged by its own id and arguments.
  ["engine::queue::enqueue", { queue: "default", function_id: "shell::exec", data: {} }, "deny"],
  ["models::register", {}, "deny"],
  ["state::get", { scope: "approvals", key: "a/b" }, "deny"],
  ["state::get", { scope: "session_tree:s1", key: "e" }, "deny"],
  ["state::get", { scope: ["approvals"], key: "a/b" }, "needs_approval"],
  ["state::get", { scope: "notes", key: "a" }, "needs_approval"],
  ["shell::exec", { command: "ls" }, "needs_approval"],
  ["shell::fs::ls", { path: "." }, "needs_approval"],
  ["some::tool", {}, "needs_approval"],
  ["models::list", {}, "allow"],
  ["engine::functions::list", {}, "allow"],
  ["directory::skills::list", {}, "allow"],
])("%s %j: %s", (id, args, expected) => expect(decide(loaded.rules, id, args).decision).toBe(expected));
