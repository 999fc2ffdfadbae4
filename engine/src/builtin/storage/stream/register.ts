// Serves stream::*. A stream whose operations a worker serves (`stream::<op>(<name>)`) keeps its items there;
// its changes are told here all the same.
import type { z } from "zod";
import type { BuiltinCall, EngineHost } from "../../../ports/host.ts";
import { causeOf } from "../cause.ts";
import type { Ledger } from "../ledger.ts";
import { applyOps } from "../ops.ts";
import { jsonText } from "../text.ts";
import {
  streamDelete,
  streamGet,
  streamList,
  streamListAll,
  streamListGroups,
  streamRead,
  streamSend,
  streamSet,
  streamUpdate,
} from "./contract.ts";
import type { ItemAddress, StreamHub } from "./hub.ts";

const OWNER = "iii-stream";

interface Deps {
  readonly ledger: Ledger;
  readonly streams: StreamHub;
}

type Op = "get" | "set" | "delete" | "list" | "list_groups" | "update";

/**
 * Asks the worker that serves this operation of this stream; undefined when there is none.
 * Says so at once: calls on stored streams take effect in the order in which they arrived.
 */
function custom(host: EngineHost, op: Op, input: { stream_name: string }, call: BuiltinCall): Promise<unknown> | undefined {
  const function_id = `stream::${op}(${input.stream_name})`;
  if (!host.isServed(function_id)) return undefined;
  const { traceparent, baggage, context } = call;
  return host.invoke({ function_id, payload: input, traceparent, baggage, ...onward(context) });
}

/** What the custom stream's worker is told of who asks. */
function onward({ origin, depth, principal, session_id }: BuiltinCall["context"]) {
  return { origin, depth: depth + 1, principal, session: session_id };
}

const field = (answer: unknown, name: string): unknown => {
  if (typeof answer !== "object" || answer === null) return undefined;
  return (answer as Record<string, unknown>)[name];
};

export function serveStream(host: EngineHost, deps: Deps): void {
  serveReads(host, deps);
  serveSet(host, deps);
  serveOtherWrites(host, deps);
}

function serveReads(host: EngineHost, { ledger, streams }: Deps): void {
  host.handle(OWNER, streamGet, async (input, call) => {
    const own = custom(host, "get", input, call);
    if (own !== undefined) return own;
    const value = streams.get(input);
    await streams.settled(input, input.item_id);
    return value;
  });
  host.handle(OWNER, streamList, async (input, call) => {
    const own = custom(host, "list", input, call);
    if (own !== undefined) return (await own) as unknown[];
    const values = streams.list(input);
    await streams.settled(input);
    return [...values];
  });
  host.handle(OWNER, streamListGroups, async (input, call) => {
    const own = custom(host, "list_groups", input, call);
    if (own !== undefined) return (await own) as string[];
    const groups = [...streams.groups(input.stream_name)];
    await ledger.allSettled();
    return groups;
  });
  host.handle(OWNER, streamListAll, async () => {
    const stream = streams.streams().map((id) => ({ id, groups: [...streams.groups(id)] }));
    await ledger.allSettled();
    return { stream, count: stream.length };
  });
  host.handle(OWNER, streamRead, async (input) => {
    const { items, ...rest } = await streams.read(input, input.since, input.epoch);
    return { ...rest, items: [...items] };
  });
}

function noted(streams: StreamHub, address: ItemAddress, data: unknown, event: "create" | "update" | "delete", call: BuiltinCall): void {
  streams.note(address, address.item_id, { data, event, size: jsonText(data, "the item").length }, causeOf(call));
}

/** Tells a change that a custom stream has made. */
function noteCustom(streams: StreamHub, address: ItemAddress, answer: unknown, data: unknown, call: BuiltinCall) {
  const old_value = field(answer, "old_value") ?? null;
  const new_value = field(answer, "new_value") ?? data;
  noted(streams, address, new_value, old_value === null ? "create" : "update", call);
  return { old_value, new_value };
}

function serveSet(host: EngineHost, { ledger, streams }: Deps): void {
  // Live deltas come by the dozen and are of interest only while they are live: no trace holds them.
  const options = { untraced: ({ ephemeral }: { ephemeral?: boolean | undefined }) => ephemeral === true };
  const set = async (input: z.output<typeof streamSet.input>, call: BuiltinCall): Promise<z.input<typeof streamSet.output>> => {
    const { ephemeral, ...rest } = input;
    const own = custom(host, "set", rest, call);
    const data = input.data ?? null;
    if (own !== undefined) return noteCustom(streams, input, await own, data, call);
    const text = streams.text(input.item_id, data);
    const old_value = streams.get(input) ?? null;
    if (ephemeral === true && !streams.isStored(input)) {
      streams.putEphemeral(input, data, text, causeOf(call));
      return { old_value, new_value: data };
    }
    const batch = ledger.batch();
    streams.put(batch, input, data, text, causeOf(call));
    await batch.commit();
    return { old_value, new_value: data };
  };
  host.handle(OWNER, streamSet, set, options);
}

function serveOtherWrites(host: EngineHost, { ledger, streams }: Deps): void {
  host.handle(OWNER, streamUpdate, async (input: z.output<typeof streamUpdate.input>, call) => {
    const own = custom(host, "update", input, call);
    if (own !== undefined) return noteCustom(streams, input, await own, null, call);
    const old = streams.get(input);
    const { value, errors } = applyOps(old, input.ops);
    const text = streams.text(input.item_id, value);
    const batch = ledger.batch();
    streams.put(batch, input, value, text, causeOf(call));
    await batch.commit();
    return { old_value: old ?? null, new_value: value, ...(errors.length === 0 ? {} : { errors }) };
  });
  host.handle(OWNER, streamDelete, async (input, call) => {
    const own = custom(host, "delete", input, call);
    if (own !== undefined) {
      const old_value = field(await own, "old_value") ?? null;
      if (old_value !== null) noted(streams, input, old_value, "delete", call);
      return { old_value };
    }
    const old_value = streams.get(input) ?? null;
    const batch = ledger.batch();
    streams.remove(batch, input, causeOf(call));
    await batch.commit();
    return { old_value };
  });
  host.handle(OWNER, streamSend, (input, call) => {
    const data = { type: input.type, data: input.data ?? null };
    const size = jsonText(data.data, "the event").length;
    streams.note(input, input.id ?? null, { data, event: "event", size }, causeOf(call));
    return null;
  });
}
