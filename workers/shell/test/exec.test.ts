// Running programs: what they see, how they end, and that nothing of them is left.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@iii/sdk";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Root } from "../src/confine.ts";
import { type ExecDeps, runProgram } from "../src/exec.ts";
import { CappedOutput } from "../src/output.ts";
import { ProcessGroups } from "../src/process-group.ts";
import { isGroupRunning, isRunning } from "./running.ts";

let base: string;
let deps: ExecDeps;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "exec-"));
  deps = {
    root: await Root.create(join(base, "root")),
    groups: new ProcessGroups(systemClock, 300),
    clock: systemClock,
    path: "/usr/local/bin:/usr/bin:/bin",
    default_timeout_ms: 10_000,
    max_output_bytes: 10_000,
  };
});
afterEach(async () => {
  await deps.groups.close();
  await rm(base, { recursive: true });
});
const run = (command: string, args: string[] = [], more: object = {}, signal = new AbortController().signal) =>
  runProgram({ command, args, ...more }, signal, deps);
const sh = (line: string, more: object = {}, signal?: AbortSignal) => run("sh", ["-c", line], more, signal);
const pidIn = (name: string) =>
  expect.poll(async () => Number(await readFile(join(deps.root.path, name), "utf8").catch(() => "0")), { timeout: 5_000, interval: 5 });

describe("a program", () => {
  test("gives its output and exit code", async () => {
    expect(await sh("echo out; echo err >&2; exit 3")).toMatchObject({
      exit_code: 3,
      signal: null,
      stdout: "out\n",
      stderr: "err\n",
      truncated: false,
      timed_out: false,
    });
  });
  test("sees a clean environment", async () => {
    process.env["SHELL_TEST_SECRET"] = "x";
    const { stdout } = await run("env");
    delete process.env["SHELL_TEST_SECRET"];
    const names = stdout
      .trim()
      .split("\n")
      .map((line) => line.split("=")[0]);
    expect(names.sort()).toEqual(["HOME", "LANG", "PATH"]);
    expect(stdout).toContain(`HOME=${deps.root.path}`);
  });
  test("runs in the root, or in a folder below it", async () => {
    expect((await run("pwd")).stdout).toBe(`${deps.root.path}\n`);
    await run("mkdir", ["sub"]);
    expect((await run("pwd", [], { cwd: "sub" })).stdout).toBe(`${deps.root.path}/sub\n`);
    await expect(run("pwd", [], { cwd: ".." })).rejects.toMatchObject({ code: "path_outside_root" });
  });
  test("gets its arguments as they are: nothing parses them", async () => {
    expect((await run("printf", ["%s|", "a b", "$(id)", ";", "*"])).stdout).toBe("a b|$(id)|;|*|");
  });
  test("gets its input, and need not read it", async () => {
    expect((await run("cat", [], { stdin: "hello" })).stdout).toBe("hello");
    expect((await run("true", [], { stdin: "x".repeat(1_000_000) })).exit_code).toBe(0);
  });
  test("that does not exist is an error with a hint", async () => {
    await expect(run("ls -la")).rejects.toMatchObject({ code: "NOT_FOUND", message: expect.stringContaining("args") });
    await expect(run("a\0")).rejects.toMatchObject({ code: "invalid_payload" });
  });
  test("that prints without end is cut in the middle and does not stall", async () => {
    const { stdout, truncated } = await sh("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last");
    expect(truncated).toBe(true);
    expect(stdout.length).toBeLessThan(11_000);
    expect(stdout.startsWith("first\n")).toBe(true);
    expect(stdout.endsWith("last\n")).toBe(true);
  });
});

describe("the end of a program", () => {
  test("a timeout ends it and keeps what it printed", async () => {
    expect(await sh("echo before; sleep 60", { timeout_ms: 200 })).toMatchObject({
      timed_out: true,
      stdout: "before\n",
      signal: "SIGTERM",
    });
  });
  test("an abort ends the whole group before the answer leaves", async () => {
    const abort = new AbortController();
    const answer = sh("echo $$ > pid; sleep 120 & wait", {}, abort.signal);
    const refused = expect(answer).rejects.toMatchObject({ code: "cancelled" });
    await pidIn("pid").toBeGreaterThan(0);
    abort.abort();
    await refused;
    expect(isGroupRunning(Number(await readFile(join(deps.root.path, "pid"), "utf8")))).toBe(false);
  });
  test("a program that ignores the request to stop is killed", async () => {
    const abort = new AbortController();
    const answer = sh("trap '' TERM; echo $$ > pid; while :; do sleep 1; done", {}, abort.signal);
    const refused = expect(answer).rejects.toMatchObject({ code: "cancelled" });
    await pidIn("pid").toBeGreaterThan(0);
    abort.abort();
    await refused;
    expect(isGroupRunning(Number(await readFile(join(deps.root.path, "pid"), "utf8")))).toBe(false);
  });
  test("what it left in the background ends with it", async () => {
    const { exit_code } = await sh("echo $$ > pid; sleep 120 & exit 0");
    expect(exit_code).toBe(0);
    expect(isGroupRunning(Number(await readFile(join(deps.root.path, "pid"), "utf8")))).toBe(false);
  });
  test("stopping the worker ends all that run", async () => {
    const answer = sh("echo $$ > pid; sleep 120");
    await pidIn("pid").toBeGreaterThan(0);
    await deps.groups.endAll();
    expect(await answer).toMatchObject({ exit_code: null, signal: "SIGTERM" });
  });
  const sleeper = "sleep 120";
  test.each([
    ["setsid", `setsid ${sleeper} & echo $! > pid; wait`],
    ["setsid that let go of all streams", `setsid ${sleeper} </dev/null >/dev/null 2>&1 & echo $! > pid; wait`],
    ["a session in a session", "setsid sh -c 'setsid sh -c \"echo \\$\\$ > pid; exec sleep 120\"' & wait"],
    ["an orphan in a session of its own", "setsid sh -c 'sleep 120 </dev/null >/dev/null 2>&1 & echo $! > pid' ; sleep 120"],
    ["one that ignores the request to stop", "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done' & wait"],
  ])("K14.2 Stop also ends %s", async (_title, line) => {
    const abort = new AbortController();
    const refused = expect(sh(line, {}, abort.signal)).rejects.toMatchObject({ code: "cancelled" });
    await pidIn("pid").toBeGreaterThan(0);
    const pid = Number(await readFile(join(deps.root.path, "pid"), "utf8"));
    abort.abort();
    await refused;
    expect(isRunning(pid)).toBe(false);
  });
  test("K14.2 a timeout, and the program's own end, take along who left the group", async () => {
    await sh(`setsid ${sleeper} & echo $! > timed; wait`, { timeout_ms: 200 });
    await sh("setsid sh -c 'echo $$ > ended; exec sleep 120' </dev/null >/dev/null 2>&1 & while ! test -s ended; do sleep 0.01; done");
    for (const name of ["timed", "ended"]) expect(isRunning(Number(await readFile(join(deps.root.path, name), "utf8")))).toBe(false);
  });
  test("K14.2 one run's end leaves another run alone", async () => {
    const abort = new AbortController();
    const other = sh("setsid sh -c 'echo $$ > other; exec sleep 120' & wait", {}, abort.signal);
    const refused = expect(other).rejects.toMatchObject({ code: "cancelled" });
    await pidIn("other").toBeGreaterThan(0);
    await sh("true");
    expect(isRunning(Number(await readFile(join(deps.root.path, "other"), "utf8")))).toBe(true);
    abort.abort();
    await refused;
  });
  test("an abort before the start starts nothing", async () => {
    await expect(sh("touch made", {}, AbortSignal.abort(new Error("stop")))).rejects.toThrow("stop");
  });
});

test("capped output keeps start and end, whatever the chunks", () => {
  const text = Array.from({ length: 1_000 }, (_, i) => `${i},`).join("");
  for (const size of [1, 7, 100, 5_000]) {
    const output = new CappedOutput(200);
    for (let at = 0; at < text.length; at += size) output.push(Buffer.from(text.slice(at, at + size)));
    expect(output.text()).toBe(`${text.slice(0, 100)}\n[… ${text.length - 200} bytes left out …]\n${text.slice(-100)}`);
  }
  const small = new CappedOutput(200);
  small.push(Buffer.from("a".repeat(200)));
  expect([small.text(), small.truncated]).toEqual(["a".repeat(200), false]);
});

describe("K14.1 output is never cut inside a character", () => {
  const text = "aé€😀".repeat(200);
  test.each([20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30])("kept: %i bytes", (max) => {
    for (const size of [1, 3, 1_000]) {
      const output = new CappedOutput(max);
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += size) output.push(bytes.subarray(at, at + size));
      const [first = "", note = "", last = ""] = output.text().split("\n");
      expect(text.startsWith(first)).toBe(true);
      expect(text.endsWith(last)).toBe(true);
      expect(note).toBe(`[… ${bytes.length - Buffer.byteLength(first + last)} bytes left out …]`);
    }
  });
});
