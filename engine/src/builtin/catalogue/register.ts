// engine::*: reads of the registry, announcements, ownerless triggers, and the two "available" trigger types.
import { BusError } from "@iii/sdk";
import { z } from "zod";
import { printable } from "../../core/bounds.ts";
import { type Builtin, type EngineHost, NOBODY } from "../../ports/host.ts";
import type { Announcement } from "../../ports/registry.ts";
import { Available } from "./available.ts";
import * as c from "./contract.ts";
import {
  builtinWorkers,
  functionDetail,
  functionSummary,
  isInternal,
  names,
  select,
  triggerRow,
  typeDetail,
  typeSummary,
  workerSummary,
} from "./rows.ts";

const OWNER = "iii-engine-functions";

export function catalogueBuiltin(): Builtin {
  return {
    name: "catalogue",
    install(host) {
      installFunctions(host);
      installTriggerReads(host);
      installWorkers(host, host.clock.now());
      installBindings(host);
      return installAvailable(host);
    },
  };
}

function notFound(what: string, id: string): BusError {
  return new BusError("NOT_FOUND", `there is no ${what} '${id}'`);
}

export function listFunctions(host: EngineHost, filter: c.Filter): c.FunctionSummary[] {
  const nameOf = names(host.registry);
  const rows = host.registry.functions();
  const visible = filter.include_internal === true ? rows : rows.filter((row) => !isInternal(row));
  const listed = select(visible, filter, ({ id, worker_id, owner, description }) => ({
    id,
    worker_name: nameOf(worker_id, owner, id),
    description: description ?? null,
  }));
  return listed.map((row) => functionSummary(row, nameOf));
}

function installFunctions(host: EngineHost): void {
  const { registry } = host;
  host.handle(OWNER, c.functionsList, (filter) => ({ functions: listFunctions(host, filter) }));
  host.handle(OWNER, c.functionsInfo, ({ function_id, function_ids }) => {
    if ((function_id === undefined) === (function_ids === undefined)) {
      throw new BusError("INVALID_ARGUMENTS", "give either 'function_id' or 'function_ids'");
    }
    const find = (id: string) => registry.function(id);
    if (function_id !== undefined) {
      const row = find(function_id);
      if (row === undefined) throw notFound("function", function_id);
      return functionDetail(registry, row);
    }
    const details = (function_ids ?? []).map((id) => {
      const row = find(id);
      return row === undefined ? { function_id: id, error: "not_found" as const } : functionDetail(registry, row);
    });
    return { functions: details };
  });
}

function triggerRows(host: EngineHost, filter: c.Filter & { trigger_type?: string | undefined; function_id?: string | undefined }) {
  const nameOf = names(host.registry);
  const rows = host.registry
    .bindings()
    .map((row) => triggerRow(row, host.registry, nameOf))
    .filter((row) => filter.include_internal === true || !row.function_id.startsWith("engine::"))
    .filter((row) => filter.trigger_type === undefined || row.trigger_type === filter.trigger_type)
    .filter((row) => filter.function_id === undefined || row.function_id === filter.function_id);
  return select(rows, filter, (row) => ({ ...row, description: row.function_id }));
}

/** Clients of 0.11 expect bindings where later ones expect types; of a client that never announces itself (browsers) nobody knows. */
function expected(host: EngineHost, worker_id: string): "types" | "bindings" | "both" {
  const announced = host.registry.announced(worker_id);
  if (announced === undefined) return "both";
  return announced.version?.startsWith("0.11.") === true ? "bindings" : "types";
}

function installTriggerReads(host: EngineHost): void {
  const { registry } = host;
  const typeRows = (filter: c.Filter) =>
    select(registry.types(), filter, (row) => ({ ...typeSummary(row, names(registry)), description: row.description }));
  const typeNamed = (id: string) => registry.types().find((row) => row.id === id);
  host.handle(OWNER, c.triggersList, (filter, call) => {
    const wanted = expected(host, call.caller.worker_id);
    const types = wanted === "bindings" ? [] : typeRows(filter).map((row) => typeSummary(row, names(registry)));
    return { triggers: wanted === "types" ? types : [...types, ...triggerRows(host, filter)] };
  });
  host.handle(OWNER, c.triggersInfo, ({ id }) => {
    const row = typeNamed(id);
    if (row === undefined) throw notFound("trigger type", id);
    return typeDetail(registry, row);
  });
  host.handle(OWNER, c.triggerTypesList, (filter) => ({
    trigger_types: typeRows(filter).map((row) => ({
      id: row.id,
      description: row.description,
      trigger_request_format: row.trigger_request_format ?? null,
      call_request_format: row.call_request_format ?? null,
    })),
  }));
  host.handle(OWNER, c.registeredTriggersList, (filter) => ({ registered_triggers: triggerRows(host, filter) }));
  host.handle(OWNER, c.registeredTriggersInfo, ({ id }) => {
    const found = registry.bindings().find(({ binding }) => binding.id === id);
    if (found === undefined) throw notFound("registered trigger", id);
    const type = typeNamed(found.binding.trigger_type);
    const target = registry.function(found.binding.function_id);
    return {
      ...triggerRow(found, registry, names(registry)),
      trigger: type === undefined ? null : typeDetail(registry, type),
      function: target === undefined ? null : functionDetail(registry, target),
    };
  });
}

type WorkerFilter = z.output<typeof c.workersList.input>;

function listWorkers(host: EngineHost, started_at: number, filter: WorkerFilter): c.WorkerSummary[] {
  const connected = host.registry.workers().map(workerSummary);
  const shown = filter.include_internal === true ? connected : connected.filter((worker) => !worker.internal);
  const wanted = filter.search?.toLowerCase();
  return [...builtinWorkers(host.registry, started_at), ...shown]
    .filter((worker) => filter.worker_id === undefined || worker.id === filter.worker_id)
    .filter((worker) => filter.runtime === undefined || worker.runtime === filter.runtime)
    .filter((worker) => filter.status === undefined || worker.status === filter.status)
    .filter((worker) => wanted === undefined || `${worker.name ?? ""} ${worker.description ?? ""}`.toLowerCase().includes(wanted))
    .sort((a, b) => (a.name ?? "").localeCompare(b.name ?? "") || a.connected_at_ms - b.connected_at_ms);
}

/** What a worker says about itself ends up on people's screens: no control or direction-changing characters, and not endless. */
function shown(text: string | null | undefined): string | undefined {
  if (text === null || text === undefined) return undefined;
  return printable(text);
}

function installWorkers(host: EngineHost, started_at: number): void {
  const { registry } = host;
  host.handle(OWNER, c.workersList, (filter) => ({ workers: listWorkers(host, started_at, filter), timestamp: host.clock.now() }));
  host.handle(OWNER, c.workersInfo, ({ name }) => {
    const worker = listWorkers(host, started_at, { include_internal: true }).find((row) => row.name === name || row.id === name);
    if (worker === undefined) throw notFound("worker", name);
    const nameOf = names(registry);
    const own = (row: { worker_name: string }) => row.worker_name === worker.name;
    return {
      worker,
      functions: listFunctions(host, { include_internal: true }).filter(own),
      trigger_types: registry
        .types()
        .map((row) => typeSummary(row, nameOf))
        .filter(own),
      registered_triggers: triggerRows(host, { include_internal: true }).filter(own),
    };
  });
  host.handle(OWNER, c.workersRegister, (input, call) => {
    const announcement: Announcement = {
      name: shown(input.name),
      description: shown(input.description),
      version: shown(input.version),
      runtime: shown(input.runtime),
      os: shown(input.os),
      pid: input.pid === null || input.pid === undefined ? undefined : Math.trunc(input.pid),
      isolation: shown(input.isolation),
    };
    return { success: registry.announce(call.caller.worker_id, announcement) };
  });
}

function installBindings(host: EngineHost): void {
  const { registry } = host;
  host.handle(OWNER, c.registerTrigger, ({ trigger_type, function_id, config = null, metadata }, { context }) => {
    const principal = context.principal ?? NOBODY;
    const { id } = registry.bind({ trigger_type, function_id, config, metadata, principal });
    return { id };
  });
  host.handle(OWNER, c.unregisterTrigger, ({ id }, call) => ({ removed: registry.unbind(id, call.caller.worker_id) }));
}

function installAvailable(host: EngineHost) {
  const functions = new Available(host, () => ({ event: "functions_changed", functions: listFunctions(host, { include_internal: true }) }));
  const workers = new Available(host, () => undefined);
  host.triggerType({
    id: "engine::functions-available",
    description: "Runs the function with all functions on the bus after their set has changed.",
    owner: OWNER,
    config: z.looseObject({}),
    bind: (binding) => functions.bind(binding),
    unbind: (binding) => functions.unbind(binding),
  });
  host.triggerType({
    id: "engine::workers-available",
    description: "Runs the function when a connection opens, announces itself or ends.",
    owner: OWNER,
    config: z.looseObject({}),
    bind: (binding) => workers.bind(binding),
    unbind: (binding) => workers.unbind(binding),
  });
  const stops = [host.onFunctions(() => functions.changed()), host.onWorkers((event) => workers.fire(event))];
  return {
    stop() {
      functions.stop();
      for (const stop of stops) stop();
    },
  };
}
