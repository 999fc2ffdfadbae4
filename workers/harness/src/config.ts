// What this worker takes from its `config` block in config.yaml. Schema only: the boot reads it to name every fault before anything starts.
import { z } from "zod";

export const Config = z.object({
  /** `allow_all` answers every permission question with yes: for a stack without a policy worker, said out loud at start. */
  policy: z.enum(["none", "allow_all"]).default("none"),
  /** Used for runs that name no provider; with it, its model for runs that name no model. */
  default_provider: z.string().optional(),
  default_model: z.string().optional(),
});
