// models::*: which models exist, what they can do and what they cost. Schemas and definitions only.
import { Model } from "@iii/contracts";
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

/** `can_run` is false only where it is known why: `why_not`, and in words the way to change it. */
export const OfferedModel = Model.extend({
  can_run: z.boolean(),
  why_not: z.exactOptional(z.enum(["no_worker", "no_key"])),
  way: z.exactOptional(z.string()),
});
export type OfferedModel = z.infer<typeof OfferedModel>;

export const modelsList = defineFunction({
  id: "models::list",
  about:
    "All known models and whether they can run now, optionally of one provider or with one capability (thinking, tools, vision, cache, thinking:<level>).",
  input: z.object({ provider: z.string().optional(), capability: z.string().optional() }),
  output: z.object({ models: z.array(OfferedModel) }),
  effect: "none",
  parallel: true,
});
export const modelsDefault = defineFunction({
  id: "models::default",
  about: "The model for runs that name none: of the first provider that has a key, else one that needs no key; null when none can run.",
  input: z.object({}),
  output: Model.nullable(),
  effect: "none",
  parallel: true,
});
export const modelsGet = defineFunction({
  id: "models::get",
  about: "One model by provider and id; null when it is not in the catalogue.",
  input: z.object({ provider: z.string().min(1), model_id: z.string().min(1) }),
  output: Model.nullable(),
  effect: "none",
  parallel: true,
});
export const modelsSupports = defineFunction({
  id: "models::supports",
  about: "Whether a model has a capability; false for an unknown model and for an unknown capability.",
  input: z.object({ provider: z.string().min(1), model_id: z.string().min(1), capability: z.string() }),
  output: z.object({ supported: z.boolean() }),
  effect: "none",
  parallel: true,
});
export const modelsRegister = defineFunction({
  id: "models::register",
  about: "Add a model to the catalogue or replace it.",
  input: Model,
  output: z.object({ key: z.string(), registered: z.literal(true) }),
  effect: "idempotent",
});
