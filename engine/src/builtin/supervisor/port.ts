// What the supervisor needs from outside: a way to start processes, and the plan of what should run. Plain values.
import { z } from "zod";
import type { WorkerSource } from "./contract.ts";

export interface ProcessSpec {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether structured messages go both ways beside the standard streams. */
  readonly ipc: boolean;
}

export interface ChildEvents {
  /** Called exactly once, also when the process could not be started: `reason` then says why. */
  exit(info: { code: number | null; signal: string | null; reason?: string }): void;
  line(stream: "stdout" | "stderr", text: string): void;
  message(value: unknown): void;
}

export interface Child {
  readonly pid: number | undefined;
  /** Does nothing when the process is gone or has no message channel. */
  send(message: HostCommand): void;
  /** To the whole process group. Does nothing when it is gone. */
  kill(signal: "SIGTERM" | "SIGKILL"): void;
}

export interface Spawner {
  /** Starts a process at the head of its own group. Its stdin stays open for as long as this process lives. Never throws. */
  spawn(spec: ProcessSpec, events: ChildEvents): Child;
}

export interface WorkerPlan {
  readonly name: string;
  readonly source: WorkerSource;
  /** Its own process; undefined for workers of the shared host and for external ones. */
  readonly process?: ProcessSpec;
  /** What the shared host must load. */
  readonly bundled?: BundledWorker;
  readonly restart: { readonly policy: "on-failure" | "never"; readonly backoff_ms: number };
}

export interface Plan {
  readonly host: ProcessSpec;
  readonly workers: readonly WorkerPlan[];
}

/** Reads the plan anew. Faults are lines for people. */
export interface PlanSource {
  read(): Promise<{ ok: true; plan: Plan } | { ok: false; faults: readonly string[] }>;
}

/** A worker as the shared host loads it. */
export const BundledWorker = z.object({
  name: z.string(),
  /** Absolute path of its `register.ts`. */
  module: z.string(),
  config: z.record(z.string(), z.unknown()),
  /** Folder that relative paths in its config start from. */
  root: z.string(),
  /** Where the bus is. */
  url: z.string(),
});
export type BundledWorker = z.infer<typeof BundledWorker>;

/** Supervisor to host. */
export const HostCommand = z.discriminatedUnion("type", [
  /** Modules that will be needed: loading them may begin. A fault in one is told when its worker is started. */
  z.object({ type: z.literal("prepare"), modules: z.array(z.string()) }),
  z.object({ type: z.literal("start"), worker: BundledWorker }),
  z.object({ type: z.literal("stop"), name: z.string() }),
]);
export type HostCommand = z.infer<typeof HostCommand>;

/** Host to supervisor. */
export const HostReport = z.discriminatedUnion("type", [
  z.object({ type: z.literal("started"), name: z.string() }),
  z.object({ type: z.literal("failed"), name: z.string(), reason: z.string() }),
  z.object({ type: z.literal("stopped"), name: z.string() }),
]);
export type HostReport = z.infer<typeof HostReport>;
