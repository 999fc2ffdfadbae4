// What this worker takes from its `config` block in config.yaml. Schema only: the boot reads it to name every fault before anything starts.
import { z } from "zod";

export const Config = z.object({
  /** `~/` is the home folder; relative paths start at the folder of config.yaml. The variable III_CREDENTIALS wins. */
  store_path: z.string().min(1).default("~/.iii/auth-credentials.json"),
});
