// How much a frame's head may carry, field by field: what the engine takes in it must be able to write again, to anybody. Pure.
import { type ErrorBody, isTooDeep, MAX_DEPTH } from "@iii/sdk";

/** Characters of a text, and of the JSON text of a value. */
export const BOUNDS = {
  name: 256,
  description: 4_096,
  baggage: 8_192,
  /** A schema, metadata, a trigger's config, an error with its details. */
  json: 65_536,
  message: 4_096,
} as const;

type Kind = "name" | "description" | "baggage" | "json";
type Head = Readonly<Record<string, unknown>>;

const TRACE = { traceparent: "name", baggage: "baggage" } as const;
const FIELDS: Readonly<Record<string, Readonly<Record<string, Kind>> | undefined>> = {
  registerfunction: { description: "description", request_format: "json", response_format: "json", metadata: "json", invocation: "json" },
  registertriggertype: { id: "name", description: "description", trigger_request_format: "json", call_request_format: "json" },
  registertrigger: { id: "name", trigger_type: "name", function_id: "name", config: "json", metadata: "json" },
  invokefunction: { invocation_id: "name", parent: "name", metadata: "json", action: "json", ...TRACE },
  cancel: { invocation_id: "name" },
  invocationresult: { invocation_id: "name" },
};

/** A head of so many bytes nests no deeper than it may: each level takes two. It is also within every bound but that of names. */
export const SMALL_HEAD = 2 * MAX_DEPTH;

const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/** Text for people and tables: no control, format or direction-changing characters, and not endless. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "").slice(0, BOUNDS.name);
}

const fault = (code: string, message: string): ErrorBody => ({ code, message });

function nameFault(field: string, value: unknown): ErrorBody | undefined {
  if (typeof value !== "string" || (value.length <= BOUNDS.name && !UNPRINTABLE.test(value))) return undefined;
  return fault("id_invalid", `'${field}' must have at most ${BOUNDS.name} printable characters`);
}

/** Why a value is more than a head may carry; `limit` counts the characters of its JSON text. */
export function jsonFault(field: string, value: unknown, limit: number = BOUNDS.json): ErrorBody | undefined {
  if (value === undefined || value === null) return undefined;
  if (isTooDeep(value)) return fault("payload_too_deep", `'${field}' nests deeper than ${MAX_DEPTH} levels`);
  const size = typeof value === "string" ? value.length : JSON.stringify(value).length;
  return size <= limit ? undefined : fault("payload_too_large", `'${field}' has ${size} characters; ${limit} are allowed`);
}

/** Why a frame is refused for what its head carries; undefined when it is not. `bytes`: the head's size. */
export function headFault(type: string, head: Head, bytes: number): ErrorBody | undefined {
  const fields = FIELDS[type];
  if (fields === undefined) return undefined;
  // The hot frames: their names are looked up, not kept.
  if (bytes <= SMALL_HEAD && (type === "invokefunction" || type === "invocationresult")) return undefined;
  for (const field of Object.keys(fields)) {
    const kind = fields[field] as Kind;
    const found = kind === "name" ? nameFault(field, head[field]) : jsonFault(field, head[field], BOUNDS[kind]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A head says `error`: an executor's, or a provider's. What is too much of it is left out, and said so; it always arrives. */
export function boundedError(error: Readonly<Record<string, unknown>>): ErrorBody {
  const { code, message } = error;
  const known = {
    code: typeof code === "string" ? code.slice(0, BOUNDS.name) : "invocation_failed",
    message: typeof message === "string" ? message : "no message",
  };
  const found = jsonFault("error", error);
  if (found === undefined) return { ...error, ...known };
  const { stacktrace, details } = error;
  const text = known.message.length > BOUNDS.message ? `${known.message.slice(0, BOUNDS.message)}…` : known.message;
  return {
    ...known,
    message: `${text} (the rest is left out: ${found.message})`,
    ...(typeof stacktrace === "string" ? { stacktrace: stacktrace.slice(0, BOUNDS.message) } : {}),
    ...(details !== undefined && jsonFault("details", details, BOUNDS.json / 2) === undefined ? { details } : {}),
  };
}
