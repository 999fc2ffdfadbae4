// The processes that commands run in. All of a run are gone before its command is answered, and none outlives this process's own end.
import { type Clock, sleep } from "@iii/sdk";
import { codeOf } from "./confine.ts";
import { membersOf, type Run, startOf } from "./descendants.ts";

const POLL_MS = 10;
const KILL_WAIT_MS = 2_000;
/** How often the processes of a run are noted while it runs: one whose parent ends is found by nothing else when it kept no descriptor. */
const NOTE_MS = 250;
const HAS_PROC = process.platform === "linux";

/** Every run that is alive, so that an exit on any path takes them along. */
export class ProcessGroups {
  readonly #alive = new Map<Run, { cancel(): void }>();
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #onExit = () => {
    for (const run of this.#alive.keys()) signalAll(run, "SIGKILL");
  };

  constructor(clock: Clock, graceMs: number) {
    this.#clock = clock;
    this.#graceMs = graceMs;
    process.on("exit", this.#onExit);
  }

  /** The run of the program `pgid`, which leads its group. `marks` are what its descriptors read in /proc, and those of no other process. */
  add(pgid: number, marks: readonly string[]): Run {
    const run: Run = { pgid, marks: new Set(marks), since: HAS_PROC ? startOf(pgid) : 0, seen: new Map() };
    this.#note(run);
    return run;
  }

  /** Ends a run: asks first when `how` says so, then kills. Resolves when no process of it runs; false if one still does. */
  async end(run: Run, how: "ask" | "kill"): Promise<boolean> {
    if (how === "ask" && signalAll(run, "SIGTERM") && (await this.#goneWithin(run, this.#graceMs))) return this.#remove(run);
    return (await this.#goneWithin(run, KILL_WAIT_MS, "SIGKILL")) && this.#remove(run);
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#alive.keys()].map((run) => this.end(run, "ask")));
  }

  /** Ends all, and lets go of the process. */
  async close(): Promise<void> {
    await this.endAll();
    process.off("exit", this.#onExit);
  }

  #note(run: Run): void {
    if (HAS_PROC) membersOf(run);
    this.#alive.set(
      run,
      this.#clock.setTimer(() => this.#note(run), NOTE_MS),
    );
  }

  #remove(run: Run): true {
    this.#alive.get(run)?.cancel();
    this.#alive.delete(run);
    return true;
  }

  async #goneWithin(run: Run, ms: number, signal?: NodeJS.Signals): Promise<boolean> {
    const until = this.#clock.monotonic() + ms;
    for (;;) {
      if (signal === undefined ? !isRunning(run) : !signalAll(run, signal)) return true;
      if (this.#clock.monotonic() >= until) return false;
      await sleep(this.#clock, POLL_MS);
    }
  }
}

function isRunning(run: Run): boolean {
  return HAS_PROC ? membersOf(run).length > 0 : send(-run.pgid, 0);
}

/** Sends a signal to every process of the run; false when there is none. */
function signalAll(run: Run, signal: NodeJS.Signals): boolean {
  if (!HAS_PROC) return send(-run.pgid, signal);
  const members = membersOf(run);
  // Each once: a second request to stop means another thing to many programs.
  if (members.some(({ group }) => group === run.pgid)) send(-run.pgid, signal);
  for (const { pid, group } of members) if (group !== run.pgid) send(pid, signal);
  return members.length > 0;
}

/** Whether somebody was there. */
function send(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (cause) {
    return codeOf(cause) !== "ESRCH"; // EPERM: somebody is there
  }
}
