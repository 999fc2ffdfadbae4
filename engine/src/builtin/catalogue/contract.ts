// engine::*: what is on the bus now (functions, trigger types, bindings, workers), and how a worker announces itself.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

const read = { effect: "none", parallel: true } as const;
const Filter = z.object({
  search: z.string().optional(),
  prefix: z.string().optional(),
  worker: z.string().optional(),
  workers: z.array(z.string()).optional(),
  include_internal: z.boolean().optional(),
});
export type Filter = z.infer<typeof Filter>;

/** `namespace` is always `default`. `description` and the formats are null where the owner gave none. */
export const FunctionSummary = z.object({
  function_id: z.string(),
  namespace: z.string(),
  worker_name: z.string(),
  /** The connection that serves it now; null for what the engine serves itself. */
  worker_id: z.string().nullable(),
  description: z.string().nullable(),
  metadata: z.unknown(),
  request_format: z.unknown(),
  response_format: z.unknown(),
});
export type FunctionSummary = z.infer<typeof FunctionSummary>;

const TriggerRef = z.object({ id: z.string(), trigger_type: z.string(), config: z.unknown() });
export const FunctionDetail = z.object({
  function_id: z.string(),
  namespace: z.string(),
  worker_name: z.string(),
  worker_id: z.string().nullable(),
  description: z.string().nullable(),
  request_schema: z.unknown(),
  response_schema: z.unknown(),
  metadata: z.unknown(),
  registered_triggers: z.array(TriggerRef),
  /** Workers that also registered this id and do not serve it: they wait, or the id is built in. */
  other_owners: z.array(z.string()),
});
export type FunctionDetail = z.infer<typeof FunctionDetail>;

export const TriggerTypeSummary = z.object({ id: z.string(), namespace: z.string(), worker_name: z.string(), description: z.string() });
export const TriggerTypeDetail = TriggerTypeSummary.extend({
  configuration_schema: z.unknown(),
  request_schema: z.unknown(),
  instance_count: z.int(),
});
export type TriggerTypeDetail = z.infer<typeof TriggerTypeDetail>;

export const RegisteredTriggerSummary = z.object({
  id: z.string(),
  trigger_type: z.string(),
  function_id: z.string(),
  worker_name: z.string(),
  config: z.unknown(),
  config_summary: z.string(),
  metadata: z.unknown(),
  /** False while nobody provides its type. */
  active: z.boolean(),
});
export type RegisteredTriggerSummary = z.infer<typeof RegisteredTriggerSummary>;

export const WorkerSummary = z.object({
  id: z.string(),
  name: z.string().nullable(),
  description: z.string().nullable(),
  version: z.string().nullable(),
  namespace: z.string(),
  runtime: z.string().nullable(),
  os: z.string().nullable(),
  pid: z.int().nullable(),
  status: z.string(),
  internal: z.boolean(),
  function_count: z.int(),
  functions: z.array(z.string()),
  connected_at_ms: z.number(),
  active_invocations: z.int(),
  isolation: z.string().nullable(),
  ip_address: z.string().nullable(),
});
export type WorkerSummary = z.infer<typeof WorkerSummary>;

export const functionsList = defineFunction({
  id: "engine::functions::list",
  about: "Functions that can be called now, sorted by id. Internal ones only with `include_internal`.",
  input: Filter,
  output: z.object({ functions: z.array(FunctionSummary) }),
  ...read,
});
export const functionsInfo = defineFunction({
  id: "engine::functions::info",
  about: "One function in full, or up to 32 by `function_ids`.",
  input: z.object({ function_id: z.string().optional(), function_ids: z.array(z.string()).max(32).optional() }),
  output: z.union([
    FunctionDetail,
    z.object({ functions: z.array(z.union([FunctionDetail, z.object({ function_id: z.string(), error: z.literal("not_found") })])) }),
  ]),
  ...read,
});
export const triggersList = defineFunction({
  id: "engine::triggers::list",
  about: "Trigger types. Workers that announced version 0.11 get bindings instead, clients that never announced both, as they expect.",
  input: Filter,
  output: z.object({ triggers: z.array(z.union([TriggerTypeSummary, RegisteredTriggerSummary])) }),
  ...read,
});
export const triggersInfo = defineFunction({
  id: "engine::triggers::info",
  about: "One trigger type, with its configuration schema.",
  input: z.object({ id: z.string() }),
  output: TriggerTypeDetail,
  ...read,
});
export const triggerTypesList = defineFunction({
  id: "engine::trigger-types::list",
  about: "Trigger types in the older clients' shape.",
  input: Filter,
  output: z.object({
    trigger_types: z.array(
      z.object({ id: z.string(), description: z.string(), trigger_request_format: z.unknown(), call_request_format: z.unknown() }),
    ),
  }),
  ...read,
});
export const registeredTriggersList = defineFunction({
  id: "engine::registered-triggers::list",
  about: "Bindings of trigger types to functions, sorted by id.",
  input: Filter.extend({ trigger_type: z.string().optional(), function_id: z.string().optional() }),
  output: z.object({ registered_triggers: z.array(RegisteredTriggerSummary) }),
  ...read,
});
export const registeredTriggersInfo = defineFunction({
  id: "engine::registered-triggers::info",
  about: "One binding, with its type and its function.",
  input: z.object({ id: z.string() }),
  output: RegisteredTriggerSummary.extend({ trigger: TriggerTypeDetail.nullable(), function: FunctionDetail.nullable() }),
  ...read,
});
export const workersList = defineFunction({
  id: "engine::workers::list",
  about: "Workers, sorted by name. Connections that announced no pid (browsers, bare clients) only with `include_internal`.",
  input: z.object({
    search: z.string().optional(),
    runtime: z.string().optional(),
    status: z.string().optional(),
    worker_id: z.string().optional(),
    include_internal: z.boolean().optional(),
  }),
  output: z.object({ workers: z.array(WorkerSummary), timestamp: z.number() }),
  ...read,
});
export const workersInfo = defineFunction({
  id: "engine::workers::info",
  about: "One worker with everything it serves.",
  input: z.object({ name: z.string() }),
  output: z.object({
    worker: WorkerSummary,
    functions: z.array(FunctionSummary),
    trigger_types: z.array(TriggerTypeSummary),
    registered_triggers: z.array(RegisteredTriggerSummary),
  }),
  ...read,
});
export const workersRegister = defineFunction({
  id: "engine::workers::register",
  about: "Announce the calling connection: from here on it counts as ready, under this name.",
  input: z.object({
    name: z.string().nullish(),
    description: z.string().nullish(),
    version: z.string().nullish(),
    runtime: z.string().nullish(),
    os: z.string().nullish(),
    pid: z.number().nullish(),
    isolation: z.string().nullish(),
    telemetry: z.unknown().optional(),
  }),
  output: z.object({ success: z.boolean() }),
});
export const registerTrigger = defineFunction({
  id: "engine::register_trigger",
  about: "Bind a trigger that no connection owns: it lives until it is unregistered or the engine restarts.",
  input: z.object({
    trigger_type: z.string().min(1),
    function_id: z.string().min(1),
    config: z.unknown().optional(),
    metadata: z.unknown().optional(),
  }),
  output: z.object({ id: z.string() }),
});
export const unregisterTrigger = defineFunction({
  id: "engine::unregister_trigger",
  about: "Remove a trigger that no other connection owns.",
  input: z.object({ id: z.string(), trigger_type: z.string().optional() }),
  output: z.object({ removed: z.boolean() }),
});
