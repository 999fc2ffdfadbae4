// What this worker takes from its `config` block in config.yaml. Schema only: the boot reads it to name every fault before anything starts.
import { z } from "zod";

export const Config = z.object({
  root: z.string().min(1).default("./workspace"),
  /** Programs are found here. Default: this process's own search path. Relative parts are dropped. */
  path: z.string().optional(),
  max_read_bytes: z.int().positive().default(262_144),
  max_write_bytes: z.int().positive().default(8_388_608),
  max_output_bytes: z.int().positive().default(131_072),
  timeout_ms: z.int().positive().max(600_000).default(120_000),
  /** How long a stopped program may clean up before it is killed. */
  grace_ms: z.int().nonnegative().default(1_000),
});
