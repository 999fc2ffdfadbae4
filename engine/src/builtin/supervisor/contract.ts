// worker::*: which workers config.yaml asks for, how they are doing, and starting and stopping them. People only, but for the list.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

/** Where a worker's code runs: in the shared host process, in a process of its own, or started by someone else. */
export const WorkerSource = z.enum(["bundled", "isolated", "path", "package", "command", "external"]);
export type WorkerSource = z.infer<typeof WorkerSource>;

/**
 * `starting`: on its way. `ready`: announced on the bus. `failed`: could not start; tried again later. `crash_loop`: dies again and again;
 * tried slowly. `stopped`: not wanted. `waiting`: external, and not connected.
 */
export const WorkerState = z.enum(["starting", "ready", "failed", "crash_loop", "stopped", "waiting"]);
export type WorkerState = z.infer<typeof WorkerState>;

export const WorkerStatus = z.object({
  name: z.string(),
  source: WorkerSource,
  state: WorkerState,
  pid: z.int().nullable(),
  restarts: z.int().nonnegative(),
  /** Why it is not ready, in words; null when it is. */
  reason: z.string().nullable(),
  /** The last lines that its process wrote to stderr. */
  stderr: z.array(z.string()),
});
export type WorkerStatus = z.infer<typeof WorkerStatus>;

const Named = z.object({ name: z.string().min(1) });
const Changed = z.object({ worker: WorkerStatus });

export const workerList = defineFunction({
  id: "worker::list",
  about: "List the workers that config.yaml names, with their state and why one is not ready.",
  input: z.object({}),
  output: z.object({ workers: z.array(WorkerStatus) }),
  effect: "none",
  parallel: true,
});
export const workerStart = defineFunction({
  id: "worker::start",
  about: "Read config.yaml again and start one worker as it says there now.",
  input: Named,
  output: Changed,
});
export const workerStop = defineFunction({
  id: "worker::stop",
  about: "Stop one worker: running calls get a moment to end. It stays down until it is started again.",
  input: Named,
  output: Changed,
});
export const workerRestart = defineFunction({
  id: "worker::restart",
  about: "Read config.yaml again, stop one worker and start it as it says there now, also from another source.",
  input: Named,
  output: Changed,
});
export const workerToken = defineFunction({
  id: "worker::token",
  about: "Make a token for an entry of config.yaml, for a process that a person starts. It is told once; the engine keeps its hash.",
  input: z.object({
    name: z.string().min(1),
    /** Known until it is revoked, also by later engines; else until this engine ends. */
    keep: z.boolean().default(false),
  }),
  output: z.object({ token: z.string() }),
});
export const operatorAdd = defineFunction({
  id: "engine::operators::add",
  about: "Make a further key of an operator, under a name that decisions are recorded with.",
  input: z.object({ name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}$/, "must be 1 to 64 letters, digits, spaces and . _ @ -") }),
  output: z.object({ key: z.string() }),
});
