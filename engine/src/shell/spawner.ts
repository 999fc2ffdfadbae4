// Starts real processes for the supervisor: each leads its own group, and ends with this process because its stdin then closes.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Child, ChildEvents, ProcessSpec, Spawner } from "../builtin/supervisor/port.ts";

function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone: that is what was wanted.
  }
}

function watch(child: ChildProcess, events: ChildEvents): void {
  let ended = false;
  const end = (info: Parameters<ChildEvents["exit"]>[0]) => {
    if (ended) return;
    ended = true;
    // What the process left behind in its group must not outlive it.
    killGroup(child.pid, "SIGKILL");
    events.exit(info);
  };
  child.on("error", (error) => {
    if (child.pid === undefined) end({ code: null, signal: null, reason: `cannot be started: ${error.message}` });
  });
  child.on("exit", (code, signal) => end({ code, signal }));
  child.on("message", (value) => events.message(value));
  child.stdin?.on("error", () => undefined);
  for (const stream of ["stdout", "stderr"] as const) {
    const readable = child[stream];
    if (readable !== null) createInterface({ input: readable }).on("line", (text) => events.line(stream, text));
  }
}

export const processSpawner: Spawner = {
  spawn(spec: ProcessSpec, events: ChildEvents): Child {
    const [command = "", ...args] = spec.argv;
    const stdio: ("pipe" | "ipc")[] = spec.ipc ? ["pipe", "pipe", "pipe", "ipc"] : ["pipe", "pipe", "pipe"];
    const child = spawn(command, args, { cwd: spec.cwd, env: spec.env, detached: true, stdio });
    watch(child, events);
    return {
      get pid() {
        return child.pid;
      },
      send: (message) => {
        if (child.connected) child.send(message, () => undefined);
      },
      kill: (signal) => killGroup(child.pid, signal),
    };
  },
};
