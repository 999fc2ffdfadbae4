// models::*: which models exist, what they can do and what they cost. Schemas and definitions only.
import { Model } from "@iii/contracts";
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

export const modelsList = defineFunction({
  id: "models::list",
  about: "All known models, optionally of one provider or with one capability (thinking, tools, vision, cache, thinking:<level>).",
  input: z.object({ provider: z.string().optional(), capability: z.string().optional() }),
  output: z.object({ models: z.array(Model) }),
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
