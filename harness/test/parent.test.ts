// The parent of a stack, with real processes: a small program stands for the stack and does what it is told.
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isAlive, until } from "../e2e/support/stack.ts";

const PARENT = fileURLToPath(new URL("../bin/parent.js", import.meta.url));
let folder: string;
let parent: ChildProcess;
let said: string;

/** Writes its pid and whether workers are apart, and follows the plan's word for its start. */
const CHILD = `
import { appendFileSync, readFileSync } from "node:fs";
const [folder] = process.argv.slice(2);
const starts = readFileSync(folder + "/starts", "utf8").split("\\n").length;
appendFileSync(folder + "/starts", process.pid + " " + (process.env.III_ISOLATE_BUNDLED ?? "") + "\\n");
const word = readFileSync(folder + "/plan", "utf8").split(" ")[starts - 1] ?? "run";
process.on("disconnect", () => process.exit(0));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => { appendFileSync(folder + "/signals", signal); process.exit(0); });
const beat = setInterval(() => process.send("beat"), 20);
if (word === "fault") process.exit(6);
process.send("up");
if (word === "die") setTimeout(() => process.exit(1), 50);
if (word === "hang") setTimeout(() => { for (;;); }, 100);
if (word === "end") setTimeout(() => process.exit(0), 50);
`;
const RUN = `
import { keep } from ${JSON.stringify(PARENT)};
const [folder] = process.argv.slice(2);
keep([process.execPath, folder + "/child.mjs", folder], {
  env: process.env, exit: (code) => process.exit(code), say: (text) => process.stderr.write(text + "\\n"), silence_ms: 600, check_ms: 50, backoff_ms: 20,
});
`;

function run(plan: string): void {
  writeFileSync(join(folder, "plan"), plan);
  parent = spawn(process.execPath, [join(folder, "parent.mjs"), folder], { stdio: ["ignore", "ignore", "pipe"] });
  parent.stderr?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
}

const starts = (): { pid: number; apart: boolean }[] =>
  readFileSync(join(folder, "starts"), "utf8")
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => ({ pid: Number(line.split(" ")[0]), apart: line.split(" ")[1] === "1" }));
const started = (count: number) => until(`${count} starts`, () => (starts().length >= count ? starts() : undefined));
const ended = () => new Promise<number | null>((resolve) => parent.once("exit", (code) => resolve(code)));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "iii-parent-"));
  said = "";
  writeFileSync(join(folder, "child.mjs"), CHILD);
  writeFileSync(join(folder, "parent.mjs"), RUN);
  appendFileSync(join(folder, "starts"), "");
});
afterEach(async () => {
  parent.kill("SIGKILL");
  await until("the end of every child", () => starts().every(({ pid }) => !isAlive(pid)) || undefined);
  rmSync(folder, { recursive: true, force: true });
});

test("a stack that is killed comes back; what it is told to stop does not", async () => {
  run("run run");
  const [first] = await started(1);
  await until("the child to be up", () => isAlive(first?.pid ?? 0) || undefined);
  await new Promise((done) => setTimeout(done, 300));
  process.kill(first?.pid ?? 0, "SIGKILL");
  const [, second] = await started(2);
  expect(second?.pid).not.toBe(first?.pid);
  await new Promise((done) => setTimeout(done, 300));
  const code = ended();
  parent.kill("SIGTERM");
  expect(await code).toBe(0);
  expect(readFileSync(join(folder, "signals"), "utf8")).toBe("SIGTERM");
  expect(said).toContain("the stack ended with SIGKILL");
});

test("a stack that hangs is ended and started again", async () => {
  run("hang run");
  const [first, second] = await started(2);
  expect(isAlive(first?.pid ?? 0)).toBe(false);
  expect(isAlive(second?.pid ?? 0)).toBe(true);
  expect(said).toContain("has not moved");
});

test.each([
  ["a fault before it is up", "fault", 6],
  ["an end in order", "end", 0],
])("%s ends the parent, too, with the same code", async (_what, plan, code) => {
  run(plan);
  expect(await ended()).toBe(code);
  expect(starts()).toHaveLength(1);
});

test("after three deaths within the window every bundled worker gets a process of its own", async () => {
  run("die die die run");
  expect((await started(4)).map(({ apart }) => apart)).toEqual([false, false, false, true]);
  expect(said).toContain("every bundled worker gets a process of its own");
});

test("nothing is left when the parent is killed", async () => {
  run("run");
  const [first] = await started(1);
  await new Promise((done) => setTimeout(done, 200));
  parent.kill("SIGKILL");
  await until("the end of the child", () => !isAlive(first?.pid ?? 0) || undefined);
});
