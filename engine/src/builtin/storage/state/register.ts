// Serves state::*. An answer leaves when what it says is durable.
import { BusError } from "@iii/sdk";
import type { BuiltinCall, EngineHost } from "../../../ports/host.ts";
import { causeOf } from "../cause.ts";
import type { Batch } from "../ledger.ts";
import { applyOps } from "../ops.ts";
import { stateDelete, stateGet, stateGetWithRev, stateList, stateListGroups, stateSet, stateTransact, stateUpdate } from "./contract.ts";
import { stateSpace } from "./table.ts";
import { type TransactDeps, transact } from "./transact.ts";

const OWNER = "iii-state";

export function serveState(host: EngineHost, deps: TransactDeps): void {
  serveReads(host, deps);
  serveWrites(host, deps);
}

function serveReads(host: EngineHost, { ledger, table }: TransactDeps): void {
  host.handle(OWNER, stateGet, async ({ scope, key }) => {
    const entry = table.get(scope, key);
    await ledger.settled(stateSpace(scope), key);
    return entry?.value;
  });
  host.handle(OWNER, stateGetWithRev, async ({ scope, key }) => {
    const entry = table.get(scope, key);
    await ledger.settled(stateSpace(scope), key);
    return { value: entry?.value ?? null, rev: entry?.rev ?? 0 };
  });
  host.handle(OWNER, stateList, async ({ scope, with_keys, prefix }) => {
    const all = table.list(scope);
    const rows = prefix === undefined ? all : all.filter(([key]) => key.startsWith(prefix));
    await ledger.settled(stateSpace(scope));
    return rows.map(([key, { value, rev }]) => (with_keys === true ? { key, value, rev } : value));
  });
  host.handle(OWNER, stateListGroups, async () => {
    const groups = [...table.scopes()];
    await ledger.allSettled();
    return { groups };
  });
}

function serveWrites(host: EngineHost, deps: TransactDeps): void {
  const { ledger, table, triggers } = deps;
  /** One write of one key: guarded, applied, its triggers added, committed. */
  const write = async <T>(address: { scope: string; key: string }, call: BuiltinCall, change: (batch: Batch) => T): Promise<T> => {
    triggers.guard(address.scope, address.key, call.context.depth);
    const batch = ledger.batch();
    const answer = change(batch);
    await batch.commit();
    return answer;
  };
  const put = (batch: Batch, { scope, key }: { scope: string; key: string }, value: unknown, call: BuiltinCall) => {
    const change = table.put(batch, scope, key, value, table.text(scope, key, value));
    triggers.emit(batch, change, causeOf(call));
    return { old_value: change.old?.value ?? null, new_value: change.now?.value ?? null };
  };

  host.handle(OWNER, stateSet, (input, call) => {
    if (!("value" in input) && !("data" in input)) throw new BusError("deserialization_error", "state::set: 'value' is missing");
    return write(input, call, (batch) => put(batch, input, "value" in input ? input.value : input.data, call));
  });
  host.handle(OWNER, stateUpdate, (input, call) =>
    write(input, call, (batch) => {
      const { value, errors } = applyOps(table.get(input.scope, input.key)?.value, input.ops);
      return { ...put(batch, input, value, call), ...(errors.length === 0 ? {} : { errors }) };
    }),
  );
  host.handle(OWNER, stateDelete, (input, call) =>
    write(input, call, (batch) => {
      const change = table.remove(batch, input.scope, input.key);
      triggers.emit(batch, change, causeOf(call));
      return change.old?.value;
    }),
  );
  host.handle(OWNER, stateTransact, (input, call) => transact(deps, input, call));
}
