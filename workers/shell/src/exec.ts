// Runs one program in the root: clean environment, own process group, capped output. Not a sandbox: the program can read what its user can.
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BusError, type Clock, within } from "@iii/sdk";
import { codeOf, folderPath, type Root } from "./confine.ts";
import { type Run, streamsOf } from "./descendants.ts";
import { CappedOutput } from "./output.ts";
import type { ProcessGroups } from "./process-group.ts";

interface ExecRequest {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  readonly cwd?: string | undefined;
  readonly timeout_ms?: number | undefined;
  readonly stdin?: string | undefined;
}
export interface ExecResult {
  exit_code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  truncated: boolean;
  timed_out: boolean;
  duration_ms: number;
}
export interface ExecDeps {
  readonly root: Root;
  readonly groups: ProcessGroups;
  readonly clock: Clock;
  /** The search path that programs are found on and run with. */
  readonly path: string;
  readonly default_timeout_ms: number;
  readonly max_output_bytes: number;
}
type Ending = { code: number | null; signal: string | null };

/** Output that children left behind may still hold open is waited for this long after the group has gone. */
const PIPE_WAIT_MS = 1_000;

/** A program that runs, with everything listened to from its first moment: what comes before a listener is lost. */
interface Running {
  readonly child: ChildProcess;
  /** Undefined when it did not start. */
  readonly run: Run | undefined;
  readonly stdout: CappedOutput;
  readonly stderr: CappedOutput;
  readonly ended: Promise<Ending>;
  readonly closed: Promise<void>;
}

/** @throws BusError `cancelled` after an abort, when the whole group is gone; `NOT_FOUND` when there is no such program. */
export async function runProgram(request: ExecRequest, signal: AbortSignal, deps: ExecDeps): Promise<ExecResult> {
  signal.throwIfAborted();
  refuseNul(request);
  const started = deps.clock.monotonic();
  const running = await start(request, deps);
  const { reason, ending } = await untilOver(running, request, signal, deps);
  await settle(running, deps.clock);
  if (reason === "aborted") throw new BusError("cancelled", `'${request.command}' was stopped`);
  const { stdout, stderr } = running;
  return {
    exit_code: ending.code,
    signal: ending.signal,
    stdout: stdout.text(),
    stderr: stderr.text(),
    truncated: stdout.truncated || stderr.truncated,
    timed_out: reason === "timeout",
    duration_ms: deps.clock.monotonic() - started,
  };
}

function refuseNul(request: ExecRequest): void {
  if ([request.command, ...(request.args ?? [])].some((text) => text.includes("\0"))) {
    throw new BusError("invalid_payload", "'command' and 'args' must not contain a NUL character");
  }
}

async function start(request: ExecRequest, deps: ExecDeps): Promise<Running> {
  const folder = await deps.root.openDir(request.cwd ?? ".");
  await using _ = folder.handle;
  const env = { PATH: deps.path, HOME: deps.root.path, LANG: "C.UTF-8" };
  const mark = openMark();
  const child = spawn(request.command, [...(request.args ?? [])], {
    cwd: folderPath(folder),
    env,
    detached: true,
    stdio: ["pipe", "pipe", "pipe", mark.fd],
  });
  closeSync(mark.fd);
  const run = child.pid === undefined ? undefined : deps.groups.add(child.pid, [mark.link, ...streamsOf(child.pid)]);
  const running = listen(child, run, deps.max_output_bytes);
  child.stdin?.on("error", () => undefined); // a program need not read its input
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause) => reject(startError(request.command, cause)));
  });
  child.stdin?.end(request.stdin ?? "");
  return running;
}

/** A file without a name that only this run's programs have open, for reading: whoever holds it is one of them. */
function openMark(): { fd: number; link: string } {
  const path = join(tmpdir(), `iii-run-${randomUUID()}`);
  const fd = openSync(path, constants.O_RDONLY | constants.O_CREAT | constants.O_EXCL, 0o400);
  unlinkSync(path);
  return { fd, link: `${path} (deleted)` };
}

function listen(child: ChildProcess, run: Run | undefined, maxBytes: number): Running {
  const stdout = new CappedOutput(maxBytes);
  const stderr = new CappedOutput(maxBytes);
  child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
  const ended = new Promise<Ending>((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return { child, run, stdout, stderr, ended, closed };
}

function startError(command: string, cause: unknown): BusError {
  if (codeOf(cause) === "ENOENT") {
    const hint = /\s/.test(command) ? "; put arguments into 'args', or use command 'sh' with args ['-c', LINE]" : "";
    return new BusError("NOT_FOUND", `there is no program '${command}'${hint}`, { cause });
  }
  return new BusError("io_error", `'${command}' could not be started: ${codeOf(cause) ?? "unknown reason"}`, { cause });
}

/** Waits for the program's end, a timeout or an abort, and ends its processes in each case. */
async function untilOver(
  { run, ended }: Running,
  request: ExecRequest,
  signal: AbortSignal,
  deps: ExecDeps,
): Promise<{ reason: "ended" | "timeout" | "aborted"; ending: Ending }> {
  const { groups, clock } = deps;
  let cancel = () => {};
  const reason = await new Promise<"ended" | "timeout" | "aborted">((resolve) => {
    const timer = clock.setTimer(() => resolve("timeout"), request.timeout_ms ?? deps.default_timeout_ms);
    const abort = () => resolve("aborted");
    signal.addEventListener("abort", abort, { once: true });
    cancel = () => {
      timer.cancel();
      signal.removeEventListener("abort", abort);
    };
    void ended.then(() => resolve("ended"));
    if (signal.aborted) abort();
  });
  cancel();
  if (run !== undefined && !(await groups.end(run, reason === "ended" ? "kill" : "ask"))) {
    throw new BusError("io_error", `processes of '${request.command}' could not be ended`);
  }
  return { reason, ending: await ended };
}

/** Lets the pipes deliver what is in them; a process that got away may hold them open, and is not waited for. */
async function settle({ child, closed }: Running, clock: Clock): Promise<void> {
  await within(clock, PIPE_WAIT_MS, closed, () => undefined);
  child.stdout?.destroy();
  child.stderr?.destroy();
}
