// The process groups that commands run in. A group is gone before its command is answered, and none outlives this process's own end.
import { readdirSync, readFileSync } from "node:fs";
import type { Clock } from "@iii/sdk";
import { codeOf } from "./confine.ts";

const POLL_MS = 10;
const KILL_WAIT_MS = 2_000;

/** Every group that is alive, so that an exit on any path takes them along. */
export class ProcessGroups {
  readonly #alive = new Set<number>();
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #onExit = () => {
    for (const pgid of this.#alive) signalGroup(pgid, "SIGKILL");
  };

  constructor(clock: Clock, graceMs: number) {
    this.#clock = clock;
    this.#graceMs = graceMs;
    process.on("exit", this.#onExit);
  }

  add(pgid: number): void {
    this.#alive.add(pgid);
  }

  /** Ends a group: asks first when `grace` is given, then kills. Resolves when no process of it runs; false if one still does. */
  async end(pgid: number, how: "ask" | "kill"): Promise<boolean> {
    if (how === "ask" && signalGroup(pgid, "SIGTERM") && (await this.#goneWithin(pgid, this.#graceMs))) return this.#remove(pgid);
    signalGroup(pgid, "SIGKILL");
    return (await this.#goneWithin(pgid, KILL_WAIT_MS)) && this.#remove(pgid);
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#alive].map((pgid) => this.end(pgid, "ask")));
  }

  /** Ends all, and lets go of the process. */
  async close(): Promise<void> {
    await this.endAll();
    process.off("exit", this.#onExit);
  }

  #remove(pgid: number): true {
    this.#alive.delete(pgid);
    return true;
  }

  async #goneWithin(pgid: number, ms: number): Promise<boolean> {
    for (let waited = 0; ; waited += POLL_MS) {
      if (!isGroupRunning(pgid)) return true;
      if (waited >= ms) return false;
      await new Promise<void>((wake) => void this.#clock.setTimer(wake, POLL_MS));
    }
  }
}

/** Sends a signal to every process of the group; false when there is none. */
function signalGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pgid, signal);
    return true;
  } catch (cause) {
    return codeOf(cause) !== "ESRCH"; // EPERM: somebody is there
  }
}

/** Whether a process of the group can still do something. Zombies that nobody collects do not count. */
export function isGroupRunning(pgid: number): boolean {
  if (!signalGroup(pgid, 0)) return false;
  if (process.platform !== "linux") return true;
  return readdirSync("/proc").some((name) => /^\d+$/.test(name) && isRunningMember(name, pgid));
}

function isRunningMember(pid: string, pgid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command name, in parentheses, may hold anything; state and group follow the last one.
    const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return group === String(pgid) && state !== "Z" && state !== "X";
  } catch {
    return false; // ended while we looked
  }
}
