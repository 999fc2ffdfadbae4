// Starts real processes for the supervisor: each leads its own group, and ends with this process because its stdin then closes.
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import type { Child, ChildEvents, ProcessSpec, Spawner } from "./port.ts";

function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone: that is what was wanted.
  }
}

/** A longer line is handed on in pieces: what a process writes must not gather here. */
const MAX_LINE = 65_536;

function onLines(stream: Readable, line: (text: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) line(part.endsWith("\r") ? part.slice(0, -1) : part);
    if (rest.length <= MAX_LINE) return;
    line(rest);
    rest = "";
  });
  stream.on("end", () => {
    if (rest !== "") line(rest);
  });
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
    if (readable !== null) onLines(readable, (text) => events.line(stream, text));
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
