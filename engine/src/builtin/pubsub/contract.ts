// publish/subscribe: at-most-once fan-out of a value to every live subscriber of a topic. Nothing is stored.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";
import { BOUNDS } from "../../core/bounds.ts";

export const publish = defineFunction({
  id: "publish",
  about: "Send `data` to every subscriber of a topic, at most once, without waiting for them.",
  input: z.object({ topic: z.string().max(BOUNDS.name), data: z.unknown() }),
  output: z.unknown(),
});

export const SubscribeTriggerConfig = z.object({
  topic: z.string().min(1).max(BOUNDS.name),
  condition_function_id: z.string().optional(),
});
export type SubscribeTriggerConfig = z.infer<typeof SubscribeTriggerConfig>;
