// The processes of a run: one per role, asked over IPC, all gone at the end. A role ends by itself when its parent does.
import { type ChildProcess, fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface Role extends AsyncDisposable {
  readonly pid: number;
  /** What the role said when it was up. */
  readonly up: Readonly<Record<string, unknown>>;
  /** Asks the role for something and waits for its answer. */
  ask<T>(question: string): Promise<T>;
}

type Answers = Record<string, () => unknown>;

/** A role's side: says that it is up and answers questions until the parent is gone. */
export function play(up: object, answers: Answers = {}): void {
  const all: Answers = { cpu: () => totalCpu(), rss: () => process.memoryUsage.rss(), ...answers };
  const answer = async (question: string): Promise<void> => {
    process.send?.({ answer: (await all[question]?.()) ?? null });
  };
  process.on("message", (question) => void answer(String(question)));
  process.on("disconnect", () => process.exit(0));
  process.send?.(up);
}

function totalCpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function next<T>(child: ChildProcess, role: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const lost = (code: number | null): void => reject(new Error(`${role} ended with ${code}`));
    child.once("exit", lost);
    child.once("message", (message) => {
      child.off("exit", lost);
      resolve(message as T);
    });
  });
}

/** Starts `roles/<role>.ts` and waits until it is up. */
export async function start(role: string, ...args: string[]): Promise<Role> {
  const child = fork(fileURLToPath(new URL(`../roles/${role}.ts`, import.meta.url)), args, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const up = await next<Record<string, unknown>>(child, role);
  return {
    pid: child.pid ?? 0,
    up,
    async ask<T>(question: string) {
      const answer = next<{ answer: T }>(child, role);
      child.send(question);
      return (await answer).answer;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((done) => child.once("exit", done));
      child.kill("SIGKILL");
      await gone;
    },
  };
}

const TICK_MS = 10;

/** CPU time in ms that a process and all its threads have used, in steps of 10. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

export function rssMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1_024;
}
