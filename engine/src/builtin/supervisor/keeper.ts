// Keeps one process running: starts it, starts it again with growing pauses when it dies, ends it with its whole group.
import type { Clock, Timer } from "@iii/sdk";
import type { Child, HostCommand, ProcessSpec, Spawner } from "./port.ts";

const BACKOFF_CAP_MS = 10_000;
const CRASH_WINDOW_MS = 30_000;
const CRASH_LIMIT = 5;
const LOOP_RETRY_MS = 30_000;
const STOP_GRACE_MS = 10_000;
const KEPT_LINES = 40;
const LINE_LENGTH = 500;
/** Lines remembered so that they are not handed on again. */
const TOLD_LINES = 200;

export type KeeperState = "stopped" | "running" | "backoff" | "crash_loop" | "ended";

export interface KeeperEvents {
  /** A new process runs. */
  started(): void;
  /** It is gone; `reason` says how, in words, and `again` that it ended the same way before it had proven itself. */
  ended(reason: string, next: { readonly again: boolean /** Absent: it is not started again. */; readonly retry_ms?: number }): void;
  message(value: unknown): void;
  line(stream: "stdout" | "stderr", text: string): void;
}

export interface Keeper {
  readonly state: KeeperState;
  readonly pid: number | undefined;
  readonly restarts: number;
  /** How it ended last time, until it has proven itself since. */
  readonly reason: string | undefined;
  /** The last lines written to stderr, over restarts. */
  readonly stderr: readonly string[];
  start(): void;
  /** Resolves when the process is gone: asked first, killed after a grace time. */
  stop(): Promise<void>;
  send(message: HostCommand): void;
  /** The process does its work: what happened before is no longer worth telling. */
  proven(): void;
}

interface KeeperOptions {
  readonly spec: ProcessSpec;
  readonly restart: { readonly policy: "on-failure" | "never"; readonly backoff_ms: number };
  readonly clock: Clock;
  readonly spawner: Spawner;
  readonly events: KeeperEvents;
}

function exitReason(info: { code: number | null; signal: string | null; reason?: string }): string {
  if (info.reason !== undefined) return info.reason;
  return info.signal === null ? `exited with code ${info.code ?? "unknown"}` : `was ended by ${info.signal}`;
}

/** The last fault that Node wrote of a module it could not load: file:line:column and the message. Pure. */
export function faultIn(lines: readonly string[]): string | undefined {
  const head = lines.findLastIndex((line) => /^(file:\/\/)?\/[^\s]+:\d+$/.test(line));
  const after = head < 0 ? [] : lines.slice(head + 1);
  const error = after.find((line) => /^\w*Error\b[^:]*: /.test(line));
  if (error === undefined) return undefined;
  const caret = after.find((line) => /^\s*\^+\s*$/.test(line))?.indexOf("^");
  const place = lines[head]?.replace("file://", "");
  return `${place}${caret === undefined ? "" : `:${caret + 1}`}: ${error.replace(/^[^:]*: /, "")}`;
}

/** How long to wait before the next start, and whether this counts as a crash loop. */
export function nextStart(crashes: readonly number[], streak: number, now: number, baseMs: number): { delay_ms: number; loop: boolean } {
  const recent = crashes.filter((at) => now - at < CRASH_WINDOW_MS).length;
  if (recent > CRASH_LIMIT) return { delay_ms: LOOP_RETRY_MS, loop: true };
  return { delay_ms: Math.min(BACKOFF_CAP_MS, baseMs * 2 ** Math.max(0, streak - 1)), loop: false };
}

export function keepProcess(options: KeeperOptions): Keeper {
  return new ProcessKeeper(options);
}

class ProcessKeeper implements Keeper {
  state: KeeperState = "stopped";
  restarts = 0;
  reason: string | undefined;
  readonly #options: KeeperOptions;
  readonly #lines: string[] = [];
  readonly #told = new Set<string>();
  #hasWorked = false;
  #child: Child | undefined;
  #startedAt = 0;
  #crashes: number[] = [];
  #streak = 0;
  #timer: Timer | undefined;
  #stopping: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }
  get stderr(): readonly string[] {
    return this.#lines;
  }

  start(): void {
    if (this.#child !== undefined) return;
    this.#timer?.cancel();
    const { clock, spawner, spec, events } = this.#options;
    this.state = "running";
    this.#hasWorked = false;
    this.#startedAt = clock.monotonic();
    const child = spawner.spawn(spec, {
      exit: (info) => this.#ended(exitReason(info)),
      line: (stream, text) => this.#line(stream, text),
      message: (value) => events.message(value),
    });
    // A process that could not be started has ended already.
    if (this.state !== "running") return;
    this.#child = child;
    events.started();
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#crashes = [];
    this.#streak = 0;
    this.reason = undefined;
    if (this.#child === undefined) {
      this.state = "stopped";
      return;
    }
    if (this.#stopping === undefined) {
      this.#stopping = Promise.withResolvers<void>();
      this.#child.kill("SIGTERM");
      this.#timer = this.#options.clock.setTimer(() => this.#child?.kill("SIGKILL"), STOP_GRACE_MS);
    }
    await this.#stopping.promise;
  }

  send(message: HostCommand): void {
    this.#child?.send(message);
  }

  proven(): void {
    if (this.state !== "running") return;
    this.reason = undefined;
    this.#hasWorked = true;
  }

  #line(stream: "stdout" | "stderr", text: string): void {
    if (stream === "stderr") {
      // What it wrote before it died the last time it need not write again.
      if (this.reason !== undefined && this.#told.has(text)) return;
      if (this.#told.size >= TOLD_LINES) this.#told.clear();
      this.#told.add(text);
      this.#lines.push(text.slice(0, LINE_LENGTH));
      if (this.#lines.length > KEPT_LINES) this.#lines.shift();
    }
    this.#options.events.line(stream, text);
  }

  #ended(how: string): void {
    this.#child = undefined;
    this.#timer?.cancel();
    if (this.#stopping !== undefined) {
      this.state = "stopped";
      this.#stopping.resolve();
      this.#stopping = undefined;
      this.#options.events.ended("stopped", { again: false });
      return;
    }
    // What it wrote in an earlier life says nothing of one that has worked.
    const words = this.#hasWorked ? undefined : faultIn(this.#lines);
    // A life that repeats the one before has handed on no new words.
    const reason = words === undefined ? how : `${how}: ${words}`;
    const again = this.reason === reason;
    this.reason = reason;
    const retry_ms = this.#again();
    this.#options.events.ended(reason, retry_ms === undefined ? { again } : { again, retry_ms });
  }

  /** In how many ms it is started again. */
  #again(): number | undefined {
    const { clock, restart } = this.#options;
    if (restart.policy === "never") {
      this.state = "ended";
      return undefined;
    }
    const now = clock.monotonic();
    this.#streak = now - this.#startedAt >= CRASH_WINDOW_MS ? 1 : this.#streak + 1;
    this.#crashes = [...this.#crashes.filter((at) => now - at < CRASH_WINDOW_MS), now];
    const next = nextStart(this.#crashes, this.#streak, now, restart.backoff_ms);
    this.state = next.loop ? "crash_loop" : "backoff";
    this.#timer = clock.setTimer(() => {
      this.restarts += 1;
      this.start();
    }, next.delay_ms);
    return next.delay_ms;
  }
}
