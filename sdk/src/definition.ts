// What a definition is, and what can be done with one: by the methods of its schemas, so that a client runs without the schema library.
import type { z } from "zod";
import { BusError } from "./errors.ts";
import { issuesOf, issueText } from "./issues.ts";
import type { CallContext } from "./protocol/frames.ts";

/**
 * What an argument is. `path`: a text or list of texts, used after `.`, `..` and doubled slashes are resolved. `command`: the name of
 * one program. `arguments`: the list of texts that the program gets. `input`: what the program reads.
 */
export type ArgumentKind = "path" | "command" | "arguments" | "input";

export interface FunctionDefinition<I extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> {
  readonly kind: "function";
  readonly id: string;
  readonly about: string;
  readonly input: I;
  readonly output: O;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What a handler is told about the call it serves, beside its input. */
export interface Call {
  readonly invocation_id: string;
  readonly function_id: string;
  /** The caller's `metadata`, unchanged; an idempotency key travels here as `idempotency_key`. */
  readonly metadata: unknown;
  /** Absent when the engine is not ours. */
  readonly context: CallContext | undefined;
  /** Aborted when the caller cancels, the deadline passes or the connection ends. */
  readonly signal: AbortSignal;
  /** W3C trace context and baggage of this call, for code that must store them. */
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
}

export type Handler<I = unknown, O = unknown> = (input: I, call: Call) => O | Promise<O>;

export interface RegisterOptions {
  description?: string;
  request_format?: unknown;
  response_format?: unknown;
  metadata?: unknown;
}

export interface TriggerSpec {
  type: string;
  function_id: string;
  config?: unknown;
  metadata?: unknown;
}

/** The input side of a definition as draft-07 JSON Schema, the form tool callers and validators read. */
export function requestFormat(definition: FunctionDefinition): unknown {
  return definition.input.toJSONSchema({ io: "input", target: "draft-7" });
}

/** The output side of a definition as draft-07 JSON Schema. */
export function responseFormat(definition: FunctionDefinition): unknown {
  return definition.output.toJSONSchema({ target: "draft-7" });
}

/**
 * Parses `value` with `schema`.
 * @throws BusError `invalid_payload` naming every wrong field and what it should be; `details.issues` has them one by one.
 */
export function parsePayload<S extends z.ZodType>(schema: S, value: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new BusError("invalid_payload", `${what}: ${issueText(parsed.error)}`, { details: { issues: issuesOf(parsed.error) } });
}
