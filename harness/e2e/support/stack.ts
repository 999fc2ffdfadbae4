// A whole stack of real processes for one test: its own data, home and ports; nothing of it is left afterwards.
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type Iii, type TriggerOptions } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";

export const REPO = fileURLToPath(new URL("../../..", import.meta.url));
const MAIN = join(REPO, "harness/bin/iii.js");

export interface StackOptions {
  /** Text of config.yaml, or a change of the shipped one. Default: the shipped one. */
  config?: string | ((shipped: string) => string);
  /** `process`: bundled workers in a host process beside the engine. Default: in the engine's. */
  bundled?: "process";
  /** Text of iii-permissions.yaml. Default: the shipped one. */
  permissions?: string;
  env?: Record<string, string>;
  /** More files for the stack's folder, by their path in it. */
  files?: Record<string, string>;
  /** Reuse the folder of an earlier stack: same data, same config. */
  folder?: string;
  /** Default true: wait until /healthz answers 200. */
  ready?: boolean;
  /** With the process that starts the stack again when it dies; `pid("engine")` is its own then. Default: without. */
  parent?: boolean;
}

export type Which = "engine" | "host" | (string & {});

export interface Stack extends AsyncDisposable {
  /** Holds config.yaml, iii-permissions.yaml, `data/`, `home/` and `workspace/`. */
  readonly folder: string;
  /** Without a token: whoever dials it has proven nothing. */
  readonly url: string;
  /** With the operator's key. */
  readonly keyUrl: string;
  /** With a token of this entry of config.yaml. */
  urlOf(name: string): Promise<string>;
  readonly httpUrl: string;
  /** Opens the page as the operator: `#key=…` behind its address. */
  readonly pageKey: string;
  /** What the command line needs to find this stack and its operator's key. */
  readonly cliEnv: Record<string, string>;
  /** A connection to the bus with the operator's key; closed with the stack. */
  readonly iii: Iii;
  trigger<T = unknown>(function_id: string, payload?: unknown, options?: TriggerOptions): Promise<T>;
  health(): Promise<{ status: number; body: Health }>;
  /** Everything that was written so far. */
  output(): { stdout: string; stderr: string };
  /** The process of the engine, of bundled workers (the engine's, unless there is a host), or of a worker with its own. */
  pid(which: Which): Promise<number>;
  /** SIGKILL, and waits until the process is gone. Killing the engine ends everything but `leaving`; see `restart`. */
  kill9(which: Which, options?: { leaving?: readonly number[] }): Promise<void>;
  /** Waits until the engine, killed by someone else, and all it had started are gone. */
  ended(leaving?: readonly number[]): Promise<void>;
  /** A new engine on the same data, config and ports, after `kill9("engine")` or `stop()`. */
  restart(env?: Record<string, string>): Promise<Stack>;
  /** Ctrl+C, and waits for the exit code. */
  stop(): Promise<number | null>;
}

export interface Health {
  status: string;
  workers: string[];
  waiting: string[];
  failed: { name: string; reason: string }[];
  durability: string;
}

/** What is waited for can no longer come. */
class Hopeless extends Error {}

/** Awaits a condition; fails with what was seen last. */
export async function until<T>(what: string, probe: () => Promise<T | undefined> | T | undefined, ms = 30_000): Promise<T> {
  const end = Date.now() + ms;
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      last = error;
    }
    if (Date.now() > end) throw new Error(`waited ${ms} ms for ${what}`, { cause: last });
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** Whether a process runs; one that has ended and was not collected does not. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) !== "Z";
  } catch {
    return false;
  }
}

/** Pids of live processes whose environment holds this folder: what a stack started, however deep. */
export function processesOf(folder: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && isAlive(pid) && environmentOf(pid).includes(folder));
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return "";
  }
}

function prepare(options: StackOptions): string {
  if (options.folder !== undefined) return options.folder;
  const folder = mkdtempSync(join(tmpdir(), "iii-stack-"));
  for (const name of ["data", "home", "workspace"]) mkdirSync(join(folder, name));
  const shipped = readFileSync(join(REPO, "config.yaml"), "utf8");
  const { config = shipped } = options;
  const text = typeof config === "string" ? config : config(shipped);
  writeFileSync(join(folder, "config.yaml"), options.bundled === undefined ? text : beside(text));
  const rules = join(REPO, "iii-permissions.yaml");
  for (const [name, text] of Object.entries(options.files ?? {})) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  if (options.permissions !== undefined) writeFileSync(join(folder, "iii-permissions.yaml"), options.permissions);
  else if (existsSync(rules)) copyFileSync(rules, join(folder, "iii-permissions.yaml"));
  return folder;
}

/** The same config with a host process. */
function beside(config: string): string {
  return config.replace(/^engine:(?: \{|$)/m, (line) => (line.endsWith("{") ? `${line} bundled: process,` : `${line}\n  bundled: process`));
}

function environment(folder: string, more: Record<string, string>): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: join(folder, "home"),
    TMPDIR: process.env["TMPDIR"] ?? tmpdir(),
    III_PORT: "0",
    III_HTTP_PORT: "0",
    III_DATA_DIR: join(folder, "data"),
    III_CONFIG: join(folder, "config.yaml"),
    NO_COLOR: "1",
    ...more,
  };
}

/** Runs the `iii` command and returns what it printed. */
export async function iii(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env["PATH"] ?? "", NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const text = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].on("data", (chunk: Buffer) => {
      text[stream] += chunk.toString();
    });
  }
  const code = await new Promise<number | null>((done) => child.on("close", done));
  return { code, ...text };
}

interface RunFile {
  pid: number;
  url: string;
  http_url: string;
  page_key: string;
}

class RealStack implements Stack {
  readonly folder: string;
  readonly url: string;
  readonly keyUrl: string;
  readonly pageKey: string;
  readonly cliEnv: Record<string, string>;
  readonly httpUrl: string;
  readonly iii: Iii;
  readonly #child: ChildProcess;
  readonly #text: { stdout: string; stderr: string };
  readonly #options: StackOptions;

  constructor(folder: string, run: RunFile, child: ChildProcess, text: { stdout: string; stderr: string }, options: StackOptions) {
    this.folder = folder;
    this.url = run.url;
    this.httpUrl = run.http_url;
    this.pageKey = `#key=${run.page_key}`;
    this.cliEnv = { III_URL: run.url, III_DATA_DIR: join(folder, "data") };
    this.#child = child;
    this.#text = text;
    this.#options = options;
    this.keyUrl = `${run.url}/as/${readFileSync(join(folder, "data/operator.key"), "utf8").trim()}`;
    this.iii = connect({ dialer: wsDialer(this.keyUrl), name: "test" });
  }

  trigger<T = unknown>(function_id: string, payload?: unknown, options?: TriggerOptions): Promise<T> {
    return this.iii.trigger<T>(function_id, payload, options);
  }

  async urlOf(name: string): Promise<string> {
    const { token } = await this.trigger<{ token: string }>("worker::token", { name });
    return `${this.url}/as/${token}`;
  }

  async health(): Promise<{ status: number; body: Health }> {
    const response = await fetch(`${this.httpUrl}/healthz`);
    return { status: response.status, body: (await response.json()) as Health };
  }

  output(): { stdout: string; stderr: string } {
    return { ...this.#text };
  }

  async pid(which: Which): Promise<number> {
    if (which === "engine") return this.#child.pid ?? 0;
    const { workers } = await this.trigger<{ workers: { name: string; source: string; pid: number | null }[] }>("worker::list", {});
    const found = workers.find((worker) => (which === "host" ? worker.source === "bundled" : worker.name === which));
    if (found?.pid === null || found === undefined) throw new Error(`no process of '${which}'`);
    return found.pid;
  }

  async kill9(which: Which, { leaving = [] }: { leaving?: readonly number[] } = {}): Promise<void> {
    const pid = await this.pid(which);
    process.kill(pid, "SIGKILL");
    await until(`the end of ${which}`, () => !isAlive(pid) || undefined);
    if (pid === this.#child.pid) await this.ended(leaving);
  }

  async ended(leaving: readonly number[] = []): Promise<void> {
    await this.iii.close({ drain_ms: 0 });
    await until(
      "the end of the engine and what it had started",
      () => processesOf(this.folder).every((one) => leaving.includes(one)) || undefined,
      20_000,
    );
  }

  async restart(env: Record<string, string> = {}): Promise<Stack> {
    const ports = { III_PORT: new URL(this.url).port, III_HTTP_PORT: new URL(this.httpUrl).port };
    return startStack({ ...this.#options, folder: this.folder, env: { ...this.#options.env, ...ports, ...env } });
  }

  async stop(): Promise<number | null> {
    await this.iii.close({ drain_ms: 0 });
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode;
    const ended = new Promise<number | null>((done) => this.#child.once("close", done));
    this.#child.kill("SIGINT");
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.iii.close({ drain_ms: 0 });
    this.#child.kill("SIGKILL");
    for (const pid of processesOf(this.folder)) killQuietly(pid);
    await until("the end of every process", () => processesOf(this.folder).length === 0 || undefined, 10_000).catch(() => undefined);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

/** Starts a stack and waits until it is ready. Use it with `await using`, so that it always ends. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const folder = prepare(options);
  const runFile = join(folder, "data/engine.json");
  const child = spawn(process.execPath, [MAIN, "start", ...(options.parent === true ? [] : ["--no-parent"])], {
    cwd: folder,
    env: environment(folder, options.env ?? {}),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const text = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].on("data", (chunk: Buffer) => {
      text[stream] += chunk.toString();
    });
  }
  try {
    const run = await until("the engine to listen", () => {
      if (child.exitCode !== null) throw new Hopeless(`the engine ended with ${child.exitCode}`);
      const found = JSON.parse(readFileSync(runFile, "utf8")) as RunFile;
      // An engine that was killed has left its own behind.
      return options.parent === true || found.pid === child.pid ? found : undefined;
    });
    const stack = new RealStack(folder, run, child, text, options);
    if (options.ready !== false) await until("every worker to be ready", async () => (await stack.health()).status === 200 || undefined);
    return stack;
  } catch (error) {
    child.kill("SIGKILL");
    for (const pid of processesOf(folder)) killQuietly(pid);
    throw new Error(`the stack did not start:\n${text.stdout}\n${text.stderr}`, { cause: error });
  }
}
