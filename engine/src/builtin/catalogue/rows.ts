// How the registry's rows look to those who ask: pure mappings, filters and order.
import { type FunctionDefinition, requestFormat, responseFormat } from "@iii/sdk";
import { z } from "zod";
import type { BindingData, FunctionRow, Registry, TypeRow, WorkerRow } from "../../ports/registry.ts";
import type { Filter, FunctionDetail, FunctionSummary, RegisteredTriggerSummary, TriggerTypeDetail, WorkerSummary } from "./contract.ts";

const NAMESPACE = "default";
const SUMMARY_LENGTH = 80;

const formats = new WeakMap<FunctionDefinition, { request: unknown; response: unknown }>();

/** One schema that cannot be rendered must not cost the whole list. */
function rendered(render: () => unknown): unknown {
  try {
    return render();
  } catch {
    return null;
  }
}

/** A built-in's schemas, rendered once. */
function formatsOf(row: FunctionRow): { request: unknown; response: unknown } {
  const { definition } = row;
  if (definition === undefined) return { request: row.request_format ?? null, response: row.response_format ?? null };
  const known = formats.get(definition);
  if (known !== undefined) return known;
  const made = { request: rendered(() => requestFormat(definition)), response: rendered(() => responseFormat(definition)) };
  formats.set(definition, made);
  return made;
}

/** Gives the name under which things are listed: the owner's, what its connection announced, else the first part of the id. */
export function names(registry: Registry): (worker_id: string | null, owner: string | undefined, id: string) => string {
  return (worker_id, owner, id) => owner ?? registry.announced(worker_id ?? "")?.name ?? id.split("::", 1)[0] ?? id;
}

type NameOf = ReturnType<typeof names>;

export function functionSummary(row: FunctionRow, nameOf: NameOf) {
  const { request, response } = formatsOf(row);
  return {
    function_id: row.id,
    namespace: NAMESPACE,
    worker_name: nameOf(row.worker_id, row.owner, row.id),
    worker_id: row.worker_id,
    description: row.description ?? null,
    metadata: row.metadata ?? null,
    request_format: request,
    response_format: response,
  } satisfies FunctionSummary;
}

export function functionDetail(registry: Registry, row: FunctionRow): FunctionDetail {
  const { request, response } = formatsOf(row);
  return {
    function_id: row.id,
    namespace: NAMESPACE,
    worker_name: names(registry)(row.worker_id, row.owner, row.id),
    worker_id: row.worker_id,
    description: row.description ?? null,
    request_schema: request,
    response_schema: response,
    metadata: row.metadata ?? null,
    registered_triggers: registry.bindingsOf(row.id).map(({ id, trigger_type, config }) => ({ id, trigger_type, config })),
    other_owners: [...row.others],
  };
}

export function typeSummary(row: TypeRow, nameOf: NameOf) {
  return { id: row.id, namespace: NAMESPACE, worker_name: nameOf(row.worker_id, row.owner, row.id), description: row.description };
}

export function typeDetail(registry: Registry, row: TypeRow): TriggerTypeDetail {
  return {
    ...typeSummary(row, names(registry)),
    configuration_schema: row.config === undefined ? (row.trigger_request_format ?? null) : z.toJSONSchema(row.config, { io: "input" }),
    request_schema: row.call_request_format ?? null,
    instance_count: registry.bindings().filter(({ binding }) => binding.trigger_type === row.id).length,
  };
}

export function triggerRow({ binding, active }: { binding: BindingData; active: boolean }, registry: Registry, nameOf: NameOf) {
  const target = registry.function(binding.function_id);
  const text = JSON.stringify(binding.config) ?? "null";
  return {
    id: binding.id,
    trigger_type: binding.trigger_type,
    function_id: binding.function_id,
    worker_name: nameOf(
      binding.worker_id ?? target?.worker_id ?? null,
      binding.worker_id === null ? target?.owner : undefined,
      binding.function_id,
    ),
    config: binding.config,
    config_summary: text.length > SUMMARY_LENGTH ? `${text.slice(0, SUMMARY_LENGTH)}…` : text,
    metadata: binding.metadata ?? null,
    active,
  } satisfies RegisteredTriggerSummary;
}

export function workerSummary(worker: WorkerRow): WorkerSummary {
  const { announced } = worker;
  return {
    id: worker.id,
    name: announced?.name ?? null,
    description: announced?.description ?? null,
    version: announced?.version ?? null,
    namespace: NAMESPACE,
    runtime: announced?.runtime ?? null,
    os: announced?.os ?? null,
    pid: announced?.pid ?? null,
    status: "connected",
    internal: announced?.pid === undefined,
    function_count: worker.functions.length,
    functions: [...worker.functions].sort(),
    connected_at_ms: worker.connected_at,
    active_invocations: worker.active_invocations,
    isolation: announced?.isolation ?? null,
    ip_address: worker.remote ?? null,
  };
}

/** The engine's own parts, listed beside the workers. */
export function builtinWorkers(registry: Registry, started_at: number): WorkerSummary[] {
  const owners = new Map<string, string[]>();
  for (const row of registry.functions()) {
    if (row.owner !== undefined) owners.set(row.owner, [...(owners.get(row.owner) ?? []), row.id]);
  }
  for (const row of registry.types()) if (row.owner !== undefined && !owners.has(row.owner)) owners.set(row.owner, []);
  return [...owners].map(([name, functions]) => ({
    ...workerSummary({
      id: name,
      kind: "worker",
      announced: undefined,
      connected_at: started_at,
      remote: undefined,
      functions,
      active_invocations: 0,
    }),
    name,
    runtime: "engine",
    status: "available",
    isolation: "in-process",
    internal: false,
  }));
}

/** Hidden from lists unless asked for: the engine's own ids but the queue's, and what says so of itself. */
export function isInternal({ id, metadata }: { id: string; metadata: unknown }): boolean {
  if (id.startsWith("engine::") && !id.startsWith("engine::queue::")) return true;
  return typeof metadata === "object" && metadata !== null && (metadata as { internal?: unknown }).internal === true;
}

/** How well an entry answers a search: 0 = a part of its id begins so, 3 = not at all. */
function rank(search: string, id: string, description: string | null): number {
  const wanted = search.toLowerCase();
  const name = id.toLowerCase();
  if (name.split(/[:.\-_/]+/).some((part) => part.startsWith(wanted))) return 0;
  if (name.includes(wanted)) return 1;
  return (description ?? "").toLowerCase().includes(wanted) ? 2 : 3;
}

interface Listed {
  readonly id: string;
  readonly worker_name: string;
  readonly description: string | null;
}

/** Applies a filter and sorts: by how well it answers the search, then by id. */
export function select<T>(rows: readonly T[], filter: Filter, about: (row: T) => Listed): T[] {
  const { search, prefix, worker, workers } = filter;
  const allowed = worker === undefined ? workers : [worker, ...(workers ?? [])];
  return rows
    .map((row) => ({ row, ...about(row) }))
    .map((item) => ({ ...item, rank: search === undefined ? 0 : rank(search, item.id, item.description) }))
    .filter((item) => item.rank < 3 && (prefix === undefined || item.id.startsWith(prefix)))
    .filter((item) => allowed === undefined || allowed.includes(item.worker_name))
    .sort((a, b) => a.rank - b.rank || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
    .map((item) => item.row);
}
