// The catalogue's view of the core's tables.
import { BusError, type Random } from "@iii/sdk";
import { headFault } from "../core/bounds.ts";
import type { Core } from "../core/core.ts";
import type { BindingData, Effect } from "../core/effects.ts";
import { announce } from "../core/lifecycle.ts";
import { unregisterTrigger } from "../core/registrations.ts";
import type { FunctionRow, Registry, TypeRow } from "../ports/registry.ts";
import type { BuiltinTypes } from "./bindings.ts";
import type { Served } from "./builtin-calls.ts";

/** Triggers without an owner live until they are unregistered. */
const MAX_OWNERLESS = 10_000;

export interface RegistryDeps {
  readonly core: Core;
  readonly random: Random;
  readonly functions: ReadonlyMap<string, Served>;
  readonly types: BuiltinTypes;
  apply(effects: Effect[]): void;
}

function builtinRow(core: Core, id: string, served: Served): FunctionRow {
  const { definition, owner } = served;
  const { about: description, metadata } = definition;
  return {
    id,
    worker_id: null,
    owner,
    definition,
    description,
    metadata,
    request_format: undefined,
    response_format: undefined,
    others: core.functions.others(id),
  };
}

function workerRow(core: Core, id: string): FunctionRow | undefined {
  const owner = core.functions.serving(id);
  if (owner === undefined) return undefined;
  return { ...owner.info, worker_id: owner.conn, owner: undefined, definition: undefined, others: core.functions.others(id) };
}

export function makeRegistry(deps: RegistryDeps): Registry {
  const { core, functions, types } = deps;
  const find = (id: string): FunctionRow | undefined => {
    const served = functions.get(id);
    return served === undefined ? workerRow(core, id) : builtinRow(core, id, served);
  };
  return {
    function: find,
    functions() {
      const ids = [...functions.keys(), ...[...core.functions.served()].map((owner) => owner.info.id)];
      return ids.map(find).filter((row) => row !== undefined);
    },
    types: () => [...builtinTypeRows(core, types), ...providedTypeRows(core)],
    bindings: () => [...core.triggers.bindings()],
    bindingsOf: (function_id) => core.triggers.bindingsOf(function_id),
    announced: (worker_id) => core.connections.get(worker_id)?.announced,
    workers: () =>
      [...core.connections.values()].map((conn) => ({
        id: conn.id,
        kind: conn.kind,
        announced: conn.announced,
        connected_at: conn.connected_at,
        remote: conn.remote,
        functions: [...conn.functions],
        active_invocations: conn.running.size,
      })),
    announce: (id, announcement) => withEffects(deps, (out) => announce(core, id, announcement, out)),
    bind: (wanted) => bindOwnerless(deps, { ...wanted, id: deps.random.uuid(), worker_id: null }),
    unbind: (id, worker_id) =>
      withEffects(deps, (out) => {
        const conn = core.connections.get(worker_id);
        return conn !== undefined && unregisterTrigger(core, conn, id, out);
      }),
  };
}

function withEffects<T>(deps: RegistryDeps, change: (out: Effect[]) => T): T {
  const out: Effect[] = [];
  const answer = change(out);
  deps.apply(out);
  return answer;
}

/** A built-in type decides at once, so that its refusal is the answer of the call. */
function bindOwnerless(deps: RegistryDeps, binding: BindingData): BindingData {
  const fault = headFault("registertrigger", { ...binding }, Number.POSITIVE_INFINITY);
  if (fault !== undefined) throw new BusError(fault.code, fault.message);
  if (deps.core.triggers.ownerless >= MAX_OWNERLESS) {
    throw new BusError("quota_exceeded", `there are ${MAX_OWNERLESS} triggers that no connection owns; unregister some`);
  }
  const out: Effect[] = [];
  deps.core.triggers.bind(binding, out);
  const later: Effect[] = [];
  for (const effect of out) {
    if (effect.type === "bind") bindNow(deps, effect.binding);
    else later.push(effect);
  }
  deps.apply(later);
  return binding;
}

function bindNow(deps: RegistryDeps, binding: BindingData): void {
  try {
    deps.types.bind(binding);
  } catch (thrown) {
    deps.core.triggers.drop(binding.id);
    if (thrown instanceof BusError) throw thrown;
    throw new BusError("trigger_registration_failed", thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
  }
}

function builtinTypeRows(core: Core, types: BuiltinTypes): TypeRow[] {
  return [...core.triggers.builtinTypes()].flatMap((id) => {
    const spec = types.get(id);
    if (spec === undefined) return [];
    const { description, owner, config } = spec;
    return [{ id, description, owner, config, worker_id: null, trigger_request_format: undefined, call_request_format: undefined }];
  });
}

function providedTypeRows(core: Core): TypeRow[] {
  return [...core.triggers.provided()].map(({ conn, info }) => ({ ...info, worker_id: conn, owner: undefined, config: undefined }));
}
