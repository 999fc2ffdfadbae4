// A call on its way out: its three spellings, its deadline, its parent and its trace context, as one frame's text.
import type { FunctionDefinition } from "../definition.ts";
import type { Random } from "../ports.ts";
import { CallHead } from "../protocol/heads.ts";
import type { Ambient, CallScope } from "./ambient.ts";
import { type Baggage, formatBaggage } from "./baggage.ts";
import { checkSize, frameText, toJson } from "./frame-text.ts";
import type { TriggerOptions, TriggerRequest, TriggerTarget } from "./iii.ts";
import type { SpanSink } from "./spans.ts";

export interface CallDeps {
  readonly random: Random;
  readonly ambient: Ambient;
  readonly owner: object;
  readonly spans: SpanSink | undefined;
  /** What the engine has said about the connection. */
  readonly session: { readonly max_frame_bytes: number | undefined };
}

const DEFAULT_TIMEOUT_MS = 30_000;

/** The three forms of `trigger` as one. */
export function readCall(target: TriggerTarget, payload: unknown, options: TriggerOptions = {}): TriggerRequest {
  if (typeof target === "string") return { ...options, function_id: target, payload };
  if ("kind" in target) return { ...options, function_id: target.id, payload };
  return target;
}

const nullable = new WeakMap<FunctionDefinition, boolean>();

/** An absent result means null when the output schema allows null but not undefined: null does not travel. */
export function withoutResult(target: TriggerTarget): null | undefined {
  if (typeof target === "string" || !("kind" in target)) return undefined;
  const known = nullable.get(target) ?? (target.output.safeParse(null).success && !target.output.safeParse(undefined).success);
  nullable.set(target, known);
  return known ? null : undefined;
}

function isVoid(request: TriggerRequest): boolean {
  return request.action?.type === "void";
}

export interface PreparedCall {
  readonly invocation_id: string | undefined;
  readonly timeout_ms: number;
  readonly text: string;
}

/** @throws BusError `serialization_error` when the payload is not JSON, `payload_too_large` when the engine would not take it. */
export function prepareCall(request: TriggerRequest, deps: CallDeps): PreparedCall {
  const { function_id, action, metadata } = request;
  const scope = deps.ambient.current();
  const timeout_ms = request.timeout_ms ?? request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const invocation_id = isVoid(request) ? undefined : deps.random.uuid();
  const head = new CallHead({
    invocation_id,
    function_id,
    ...traceContext(request, scope, deps.spans),
    action,
    metadata,
    timeout_ms: isVoid(request) ? undefined : timeout_ms,
    ...lineage(request, scope, deps.owner),
  });
  const what = `the payload for '${function_id}'`;
  const text = frameText(head, "data", toJson(request.payload, what));
  checkSize(text, deps.session.max_frame_bytes, what);
  return { invocation_id, timeout_ms, text };
}

/**
 * On another connection, or after its handler has answered, a call is no parent any more. The agent's mark is said in any case:
 * after a reconnect the engine does not know the parent, and must not take the call for the worker's own.
 */
function lineage(
  request: TriggerRequest,
  scope: CallScope | undefined,
  owner: object,
): { parent?: string; origin?: "agent"; session_id?: string } {
  const nested = scope !== undefined && scope.owner === owner && scope.running && scope.invocation_id !== "";
  const marked = request.origin === "agent" || scope?.origin === "agent";
  const { session_id } = request;
  return {
    ...(nested ? { parent: scope.invocation_id } : {}),
    ...(marked ? { origin: "agent" } : {}),
    ...(session_id === undefined ? {} : { session_id }),
  };
}

/** What a handler hands on is the same for all of its calls. */
const texts = new WeakMap<Baggage, { readonly text: string | undefined }>();

function baggageText(carried: Baggage | undefined, added: Baggage | undefined): string | undefined {
  if (carried === undefined || added !== undefined) return formatBaggage({ ...carried, ...added });
  const known = texts.get(carried) ?? { text: formatBaggage(carried) };
  texts.set(carried, known);
  return known.text;
}

function traceContext(request: TriggerRequest, scope: CallScope | undefined, spans: SpanSink | undefined) {
  return {
    traceparent: request.traceparent ?? spans?.active?.() ?? scope?.traceparent,
    baggage: baggageText(scope?.baggage, request.baggage),
  };
}
