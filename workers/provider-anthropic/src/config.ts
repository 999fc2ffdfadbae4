// What this worker takes from its `config` block in config.yaml. Schema only: the boot reads it to name every fault before anything starts.
import { ProviderSettings } from "@iii/provider-kit/spec";
import { z } from "zod";

export const Config = ProviderSettings.extend({
  /** Cache markers on the system prompt, the tools and the end of the conversation. */
  cache: z.boolean().default(true),
});
export type Config = z.infer<typeof Config>;
