// What this worker takes from its `config` block in config.yaml. Schema only: the boot reads it to name every fault before anything starts.
import { ProviderSettings } from "@iii/provider-kit/spec";
import { z } from "zod";

export const Config = ProviderSettings.extend({
  /** A fault is what was asked for: it is not tried again. */
  max_retries: z.int().nonnegative().default(0),
  /** Pause before each word. */
  word_ms: z.number().nonnegative().default(0),
});
export type Config = z.infer<typeof Config>;
