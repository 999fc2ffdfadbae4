// The shell worker on a bus: results as plain JSON, what it declares about itself, and cancellation that reaches the process.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testBus } from "@iii/engine/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { exec, fsGrep, fsLs, fsRead, fsWrite } from "../src/contract.ts";
import { worker } from "../src/register.ts";
import { isGroupRunning } from "./running.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "shell-bus-"));
});
afterEach(() => rm(root, { recursive: true }));

test("the root is made at start, and files go in and out of it", async () => {
  await using bus = await testBus([worker], { root });
  expect(await bus.call(fsLs, { path: "." })).toEqual({ entries: [], truncated: false });
  await bus.call(fsWrite, { path: "a/b.txt", content: "hello\n", create_dirs: true });
  expect(await bus.call(fsRead, { path: "a/b.txt" })).toEqual({ content: "hello\n", truncated: false, size: 6 });
  expect(await bus.call(fsGrep, { pattern: "h.llo" })).toMatchObject({ matches: [{ path: "a/b.txt", line: 1, text: "hello" }] });
  expect(await readFile(join(root, "workspace/a/b.txt"), "utf8")).toBe("hello\n");
  await expect(bus.call(fsRead, { path: "../x" })).rejects.toMatchObject({ code: "path_outside_root" });
});
test("a cancelled program is gone before the caller hears of it", async () => {
  await using bus = await testBus([{ worker, config: { root: "." } }], { root });
  const abort = new AbortController();
  const line = "echo $$ > pid; sleep 120 & wait";
  const answer = bus.call(exec, { command: "sh", args: ["-c", line] }, { signal: abort.signal });
  const refused = expect(answer).rejects.toMatchObject({ code: "cancelled" });
  const pid = async () => Number(await readFile(join(root, "pid"), "utf8").catch(() => "0"));
  await expect.poll(pid, { timeout: 5_000, interval: 5 }).toBeGreaterThan(0);
  abort.abort();
  await refused;
  expect(isGroupRunning(await pid())).toBe(false);
});
test("what it declares lets reads repeat and never a program", () => {
  const effects = [fsRead, fsLs, fsGrep, fsWrite, exec].map(({ metadata }) => [metadata["effect"], metadata["parallel"] ?? false]);
  expect(effects).toEqual([
    ["none", true],
    ["none", true],
    ["none", true],
    ["idempotent", false],
    ["at_most_once", false],
  ]);
});
