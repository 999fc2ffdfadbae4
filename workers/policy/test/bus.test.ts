// The policy worker on a bus: what it answers to the gate, and that it does not start on a broken file.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testBus } from "@iii/engine/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkPermissions } from "../src/contract.ts";
import { worker } from "../src/register.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "policy-"));
});
afterEach(() => rm(root, { recursive: true }));

test("answers from the file, after the denials that no file can lift", async () => {
  await writeFile(join(root, "iii-permissions.yaml"), "rules:\n  - '!shell::exec'\n  - '*'\n");
  await using bus = await testBus([worker], { root });
  expect(await bus.call(checkPermissions, { function_id: "shell::exec" })).toMatchObject({ decision: "deny", rule_id: "shell::exec" });
  expect(await bus.call(checkPermissions, { function_id: "some::tool", args: {} })).toEqual({ decision: "allow", rule_id: "*" });
  expect(await bus.call(checkPermissions, { function_id: "approval::resolve" })).toMatchObject({
    decision: "deny",
    rule_id: "human_only_function",
  });
});
test("arguments that are no object are refused, so that the caller fails closed", async () => {
  await using bus = await testBus([worker], { root });
  await expect(bus.call("policy::check_permissions", { function_id: "x", args: [1] })).rejects.toMatchObject({ code: "invalid_payload" });
});
test("without a file everything asks", async () => {
  await using bus = await testBus([worker], { root });
  expect(await bus.call(checkPermissions, { function_id: "models::list" })).toEqual({ decision: "needs_approval" });
});
test("a broken file stops the start", async () => {
  await writeFile(join(root, "iii-permissions.yaml"), "rules: 7\n");
  await expect(testBus([worker], { root })).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining("yaml:1:8") });
});
