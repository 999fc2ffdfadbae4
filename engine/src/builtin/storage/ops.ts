// The update operations of `state::update`: pure, copy on write. A failing operation is reported and changes nothing.

import { isTooDeep } from "@iii/sdk";
import type { StateOp, StateOpError } from "./state/contract.ts";

type Path = string | readonly string[] | undefined;
type Json = Record<string, unknown>;
type Outcome = { value: unknown } | { code: string; message: string };

const MAX_DEPTH = 32;
const MAX_SEGMENT_BYTES = 256;
const MAX_MERGE_KEYS = 1_024;
const MAX_MERGE_DEPTH = 16;
const POLLUTED = new Set(["__proto__", "constructor", "prototype"]);
const encoder = new TextEncoder();

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const fail = (code: string, message: string): Outcome => ({ code, message });

/** A string is one literal key; the empty string and the empty list are the root. */
const segmentsOf = (path: Path): readonly string[] => {
  if (path === undefined || path === "") return [];
  return typeof path === "string" ? [path] : path;
};

function checkPath(op: string, segments: readonly string[]): Outcome | undefined {
  if (segments.length > MAX_DEPTH) return fail(`${op}.path.too_deep`, `the path has more than ${MAX_DEPTH} segments`);
  for (const segment of segments) {
    if (segment === "") return fail(`${op}.path.empty_segment`, "the path has an empty segment");
    if (encoder.encode(segment).length > MAX_SEGMENT_BYTES) {
      return fail(`${op}.path.segment_too_long`, `a path segment is longer than ${MAX_SEGMENT_BYTES} bytes`);
    }
    if (POLLUTED.has(segment)) return fail(`${op}.path.proto_polluted`, `the path segment '${segment}' is not allowed`);
  }
  return undefined;
}

function checkMergeValue(value: unknown): Outcome | undefined {
  if (!isObject(value)) return fail("merge.value.not_an_object", "merge needs an object");
  const keys = Object.keys(value);
  if (keys.length > MAX_MERGE_KEYS) return fail("merge.value.too_many_keys", `merge takes at most ${MAX_MERGE_KEYS} keys`);
  const polluted = keys.find((key) => POLLUTED.has(key));
  if (polluted !== undefined) return fail("merge.value.proto_polluted", `the key '${polluted}' is not allowed`);
  if (isTooDeep(value, MAX_MERGE_DEPTH)) return fail("merge.value.too_deep", `merge takes at most ${MAX_MERGE_DEPTH} levels`);
  return undefined;
}

const own = (target: Json, key: string): unknown => (Object.hasOwn(target, key) ? target[key] : undefined);

/** The value at `segments` replaced by `change(old)`; intermediates that are no objects become objects. */
function at(target: unknown, segments: readonly string[], change: (old: unknown) => Outcome): Outcome {
  const [first, ...rest] = segments;
  if (first === undefined) return change(target);
  const holder = isObject(target) ? target : {};
  const inner = at(own(holder, first), rest, change);
  return "code" in inner ? inner : { value: { ...holder, [first]: inner.value } };
}

function set(root: unknown, path: string, value: unknown): Outcome {
  if (path === "") return { value };
  const holder = root === undefined ? {} : root;
  if (!isObject(holder)) return fail("set.target_not_object", "the value is not an object");
  return { value: { ...holder, [path]: value } };
}

function merge(root: unknown, segments: readonly string[], value: unknown): Outcome {
  const wrong = checkMergeValue(value);
  if (wrong !== undefined) return wrong;
  const addition = value as Json;
  if (root !== undefined && !isObject(root)) {
    return segments.length === 0 ? { value: root } : fail("merge.target_not_object", "the value is not an object");
  }
  return at(root, segments, (old) => ({ value: { ...(isObject(old) ? old : {}), ...addition } }));
}

function add(op: "increment" | "decrement", root: unknown, path: string, by: number): Outcome {
  const bump = (old: unknown): Outcome => {
    if (old === undefined) return { value: by };
    if (typeof old !== "number") return fail(`${op}.not_number`, "the value is not a number");
    const sum = old + by;
    if (Number.isInteger(old) && !Number.isSafeInteger(sum)) return fail(`${op}.not_number`, "the result is too large");
    return { value: sum };
  };
  if (path === "") return bump(root);
  if (root !== undefined && !isObject(root)) return fail(`${op}.target_not_object`, "the value is not an object");
  return at(root, [path], bump);
}

function append(root: unknown, segments: readonly string[], value: unknown): Outcome {
  if (segments.length > 0 && root !== undefined && !isObject(root)) {
    return fail("append.target_not_object", "the value is not an object");
  }
  return at(root, segments, (old) => {
    if (old === undefined || old === null) return { value: typeof value === "string" && segments.length < 2 ? value : [value] };
    if (Array.isArray(old)) return { value: [...old, value] };
    if (typeof old === "string" && typeof value === "string") return { value: old + value };
    return fail("append.type_mismatch", "only arrays take any value, and strings take strings");
  });
}

function remove(root: unknown, path: string): Outcome {
  if (path === "") return { value: null };
  const holder = root === undefined ? {} : root;
  if (!isObject(holder)) return fail("remove.target_not_object", "the value is not an object");
  const { [path]: _gone, ...rest } = holder;
  return { value: rest };
}

function apply(root: unknown, op: StateOp): Outcome {
  const segments = segmentsOf(op.path);
  const wrong = checkPath(op.type, segments);
  if (wrong !== undefined) return wrong;
  switch (op.type) {
    case "set":
      return set(root, op.path, op.value ?? null);
    case "merge":
      return merge(root, segments, op.value);
    case "increment":
      return add("increment", root, op.path, op.by);
    case "decrement":
      return add("decrement", root, op.path, -op.by);
    case "append":
      return append(root, segments, op.value ?? null);
    case "remove":
      return remove(root, op.path);
  }
}

/** Applies `ops` in order to `value` (undefined: there is none). Never throws and never changes `value`. */
export function applyOps(value: unknown, ops: readonly StateOp[]): { value: unknown; errors: StateOpError[] } {
  const errors: StateOpError[] = [];
  let current = value;
  for (const [op_index, op] of ops.entries()) {
    const outcome = apply(current, op);
    if ("code" in outcome) errors.push({ op_index, code: outcome.code, message: outcome.message });
    else current = outcome.value;
  }
  return { value: current === undefined ? {} : current, errors };
}
