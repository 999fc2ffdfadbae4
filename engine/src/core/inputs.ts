// What a built-in's input would read, write, bind and have called later: the facts that `access.ts` judges.

/** Writes that are a tool's own business when nested, and no business of the model itself. */
const RAW_WRITES = new Set([
  "state::set",
  "state::update",
  "state::delete",
  "state::transact",
  "stream::set",
  "stream::update",
  "stream::delete",
  "stream::send",
  "publish",
  "iii::durable::publish",
  "engine::register_trigger",
  "engine::unregister_trigger",
  "engine::workers::register",
]);

/** Reads of one scope or stream. */
const READS = new Set([
  "state::get",
  "state::get_with_rev",
  "state::list",
  "stream::get",
  "stream::list",
  "stream::read",
  "stream::list_groups",
]);
/** Reads of every name there is. */
const READS_ALL = new Set(["state::list_groups", "stream::list_all"]);

export const isRawWrite = (function_id: string): boolean => RAW_WRITES.has(function_id);

export function textOf(value: unknown, key: string): string[] {
  const found = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  return typeof found === "string" ? [found] : [];
}

function listOf(value: object, key: string): unknown[] {
  const found = (value as Record<string, unknown>)[key];
  return Array.isArray(found) ? found : [];
}

export interface WantedBinding {
  readonly trigger_type?: unknown;
  readonly function_id?: unknown;
  readonly config?: unknown;
}

/** Functions that a trigger's config names beside the one it is bound to: conditions, middleware, at any depth. */
function idsIn(config: unknown): string[] {
  const ids: string[] = [];
  const open: unknown[] = [config];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== "object" || next === null) continue;
    for (const [key, value] of Object.entries(next)) {
      if (/(^|_)function_ids?$|^functions?$/.test(key)) ids.push(...[value].flat().filter((one) => typeof one === "string"));
      open.push(value);
    }
  }
  return ids;
}

export function bindingOf(wanted: WantedBinding): { trigger_type: string; function_id: string; config: unknown; ids: string[] } {
  const [trigger_type = ""] = textOf(wanted, "trigger_type");
  const [function_id = ""] = textOf(wanted, "function_id");
  return { trigger_type, function_id, config: wanted.config, ids: idsIn(wanted.config) };
}

/** Functions that run later because of this call, with what they will get. */
export function laterCalls(function_id: string, input: object): { id: string; data: unknown }[] {
  const rows = function_id === "engine::queue::enqueue" ? [input] : function_id === "state::transact" ? listOf(input, "enqueue") : [];
  return rows.flatMap((row) => textOf(row, "function_id").map((id) => ({ id, data: (row as { data?: unknown }).data })));
}

/** Queues that this call feeds. */
export function laterQueues(function_id: string, input: object): string[] {
  if (function_id === "engine::queue::enqueue") return textOf(input, "queue");
  return function_id === "state::transact" ? listOf(input, "enqueue").flatMap((row) => textOf(row, "queue")) : [];
}

/** Scopes, streams and topics that this call would change. */
export function writtenNames(function_id: string, input: object): string[] {
  if (function_id === "state::transact") {
    const scopes = listOf(input, "writes").flatMap((row) => textOf(row, "scope"));
    const streams = [...listOf(input, "events"), ...listOf(input, "drops")].flatMap((row) => textOf(row, "stream_name"));
    return [...scopes, ...streams, ...listOf(input, "publish").flatMap((row) => textOf(row, "topic"))];
  }
  return RAW_WRITES.has(function_id) ? [...textOf(input, "scope"), ...textOf(input, "stream_name"), ...textOf(input, "topic")] : [];
}

/** Scopes and streams that this call would show; `*` = the names of all of them. A transaction's checks tell revisions. */
export function readNames(function_id: string, input: object): string[] {
  if (READS_ALL.has(function_id)) return ["*"];
  if (function_id === "state::transact") return listOf(input, "checks").flatMap((row) => textOf(row, "scope"));
  return READS.has(function_id) ? [...textOf(input, "scope"), ...textOf(input, "stream_name")] : [];
}
