// The worker's settings.
import { z } from "zod";

export const Config = z.object({
  max_turns: z.int().positive().default(50),
  /** How long a parked call waits for a person; 0 = for ever. */
  approval_timeout_ms: z
    .int()
    .nonnegative()
    .default(30 * 60_000),
  model_timeout_ms: z.int().positive().default(300_000),
  policy_timeout_ms: z.int().positive().default(5_000),
  /** After its own start, and for calls that were parked: how long a function that is not served yet is waited for. */
  startup_grace_ms: z.int().nonnegative().default(10_000),
  sweep_interval_ms: z.int().positive().default(15_000),
  /** How often a step may fail before its turn is ended as failed. */
  max_step_failures: z.int().positive().default(8),
  /** `auto`: the session tree when it is served, decided once per session. */
  transcript: z.enum(["auto", "tree", "own"]).default("auto"),
});
export type Config = z.output<typeof Config>;
