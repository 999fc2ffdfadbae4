// Finds the processes of a run in /proc: its group, their children, and who left both (setsid) but still holds a descriptor that only
// this run's programs got. Sees what one user may see of its own processes; needs no privileges. Linux only: elsewhere the group is all.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** In clock ticks since the machine started; with the pid it names one process for good. */
  readonly start: number;
}

/** One program's run. `seen` are its processes as far as they were met: who is orphaned later is still known. */
export interface Run {
  readonly pgid: number;
  /** What the links of its descriptors read, in /proc/<pid>/fd. */
  readonly marks: ReadonlySet<string>;
  /** Processes that are older are not looked at. */
  readonly since: number;
  readonly seen: Map<number, number>;
}

/** Those of a run that can still do something; zombies that nobody collects do not count. */
export function membersOf(run: Run): Process[] {
  const all = processes().filter(({ pid, start }) => start >= run.since && pid !== process.pid);
  const started = new Map(all.map(({ pid, start }) => [pid, start]));
  for (const [pid, start] of run.seen) if (started.get(pid) !== start) run.seen.delete(pid);
  const take = (joins: (one: Process) => boolean): void => {
    for (const one of all) if (!run.seen.has(one.pid) && joins(one)) run.seen.set(one.pid, one.start);
  };
  take((one) => one.group === run.pgid || isMarked(one, run));
  for (let before = -1; before !== run.seen.size; ) {
    before = run.seen.size;
    take(({ parent }) => run.seen.has(parent));
  }
  return all.filter(({ pid }) => run.seen.has(pid));
}

/** When a process started; 0 when it has gone. */
export function startOf(pid: number): number {
  return stat(String(pid), true)[0]?.start ?? 0;
}

/** What standard input, output and error of a process are; nothing of one that has gone. */
export function streamsOf(pid: number): string[] {
  return [0, 1, 2].flatMap((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
}

function isMarked({ pid }: Process, { marks }: Run): boolean {
  return entries(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`).some((link) => marks.has(link)));
}

function processes(): Process[] {
  return entries("/proc").flatMap((name) => (/^\d+$/.test(name) ? stat(name) : []));
}

function stat(pid: string, ended = false): Process[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command name, in parentheses, may hold anything; the rest follows the last one.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (!ended && (fields[0] === "Z" || fields[0] === "X")) return [];
    return [{ pid: Number(pid), parent: Number(fields[1]), group: Number(fields[2]), start: Number(fields[19]) }];
  } catch {
    return []; // ended while we looked
  }
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // ended while we looked, or another user's
  }
}

function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    return [];
  }
}
