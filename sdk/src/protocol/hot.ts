// The heads of the two frames that every call consists of, read by hand: the same verdict and the same values as their schemas give, in a
// fraction of the time. A property holds both equal.
import type { Action, FrameOf } from "./frames.ts";

type Head = Readonly<Record<string, unknown>>;

/** What the engine reads in a call's head; null and wrong types have become absent. */
export type InvokeRead = Omit<FrameOf<"invokefunction">, "type" | "context" | "data" | "action"> & { action?: Action | undefined };
export type ResultRead = Pick<FrameOf<"invocationresult">, "invocation_id" | "error">;

const MAX_ID = 256;

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const nameOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const countOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;

function actionOf(value: unknown): Action | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { type, queue, delay_ms, dedupe_key } = value as Head;
  if (type === "void") return { type };
  if (type !== "enqueue" || typeof queue !== "string") return undefined;
  return { type, queue, delay_ms: countOf(delay_ms), dedupe_key: textOf(dedupe_key) };
}

/** Undefined for a head that the schema refuses. */
export function readInvoke(head: Head): InvokeRead | undefined {
  const function_id = nameOf(head["function_id"]);
  if (function_id === undefined || function_id.length > MAX_ID) return undefined;
  const wanted = head["action"] ?? undefined;
  const action = wanted === undefined ? undefined : actionOf(wanted);
  if (wanted !== undefined && action === undefined) return undefined;
  return {
    invocation_id: nameOf(head["invocation_id"]),
    function_id,
    traceparent: textOf(head["traceparent"]),
    baggage: textOf(head["baggage"]),
    action,
    metadata: head["metadata"],
    timeout_ms: countOf(head["timeout_ms"]),
    parent: nameOf(head["parent"]),
    origin: head["origin"] === "agent" ? "agent" : undefined,
    session_id: nameOf(head["session_id"]),
  };
}

/** Undefined for a head that the schema refuses. */
export function readResult(head: Head): ResultRead | undefined {
  const invocation_id = nameOf(head["invocation_id"]);
  return invocation_id === undefined ? undefined : { invocation_id, error: head["error"] };
}
