// Runs the functions that the engine serves itself: payload in as JSON, checked by the definition, answer out as JSON.
import { BusError, type FunctionDefinition, issuesOf, issueText, isTooDeep, MAX_DEPTH, toBusError, toWire, unsampled } from "@iii/sdk";
import type { Access } from "../core/access.ts";
import type { BuiltinRun, Outcome } from "../core/effects.ts";
import type { BuiltinCall, Caller } from "../ports/host.ts";
import type { EngineSpan, EngineTracer } from "../ports/tracer.ts";

export interface Served {
  readonly owner: string;
  readonly definition: FunctionDefinition;
  readonly handler: (input: unknown, call: BuiltinCall) => unknown;
  /** Which calls leave no span, and neither does what they cause. A failed one still does. */
  readonly untraced?: ((input: unknown) => boolean) | undefined;
}

export interface BuiltinDeps {
  readonly functions: ReadonlyMap<string, Served>;
  readonly access: Access;
  readonly tracer: EngineTracer;
  caller(id: string | null): Caller;
  done(id: string, outcome: Outcome): void;
}

/** Never traced: they are how traces are read and written. */
const UNTRACED = /^(engine::(traces|logs|log|metrics|baggage|sampling|health|alerts|rollups)::|iii-observability::)/;
/** Levels that a built-in's own input has around a value: `{writes: [{value}]}`. The value's own depth is checked where it is used. */
const AROUND = 4;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** @throws BusError `deserialization_error`, `payload_too_deep` */
function parseJson(payload: Uint8Array | undefined): unknown {
  if (payload === undefined) return {};
  const value: unknown = readJson(decoder.decode(payload));
  const limit = MAX_DEPTH + AROUND;
  // Each level takes two bytes.
  if (payload.length > 2 * limit && isTooDeep(value, limit)) {
    throw new BusError("payload_too_deep", `the payload nests deeper than ${limit} levels`, { details: { limit } });
  }
  return value ?? {};
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new BusError("deserialization_error", "the payload is not JSON", { cause });
  }
}

/** @throws BusError `deserialization_error` naming every wrong field and what was expected there. */
function checkInput(definition: FunctionDefinition, value: unknown): unknown {
  const parsed = definition.input.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new BusError("deserialization_error", `${definition.id}: ${issueText(parsed.error)}`, {
    details: { issues: issuesOf(parsed.error) },
  });
}

function encodeResult(value: unknown): Outcome {
  if (value === undefined) return {};
  return { payload: encoder.encode(JSON.stringify(value)) };
}

function callOf(deps: BuiltinDeps, run: BuiltinRun, traceparent: string | undefined): BuiltinCall {
  const { id, context, parent, metadata, baggage, caller } = run;
  return { invocation_id: id, caller: deps.caller(caller), context, parent, metadata, traceparent, baggage };
}

function startSpan({ tracer }: BuiltinDeps, { function_id, traceparent, baggage }: BuiltinRun): EngineSpan | undefined {
  if (traceparent === undefined || UNTRACED.test(function_id)) return undefined;
  // The caller's baggage names the caller's function; this span is the built-in's.
  const attributes = { "iii.function.id": function_id };
  return tracer.start(`call ${function_id}`, { traceparent, baggage, attributes, kind: "server" });
}

/** Starts a built-in; `done` gets its outcome, at once when the handler is synchronous. */
export function runBuiltin(deps: BuiltinDeps, run: BuiltinRun): void {
  const served = deps.functions.get(run.function_id);
  let span: EngineSpan | undefined;
  const finish = (outcome: Outcome): void => {
    span?.end(outcome.error);
    deps.done(run.id, outcome);
  };
  const fail = (thrown: unknown): void => {
    span ??= startSpan(deps, run);
    finish({ error: toWire(toBusError(thrown)) });
  };
  try {
    if (served === undefined) throw new BusError("function_not_found", `'${run.function_id}' is not served`);
    const input = checkInput(served.definition, parseJson(run.payload));
    const untraced = served.untraced?.(input) === true;
    span = untraced ? undefined : startSpan(deps, run);
    const call = callOf(deps, run, untraced ? unsampled(run.traceparent) : span?.traceparent || run.traceparent);
    const refused = deps.access.refuseInput(run.function_id, input, {
      origin: run.context.origin,
      direct: run.direct,
      principal: run.principal,
      by: run.by,
      session: run.context.session_id,
      kind: call.caller.kind,
    });
    if (refused !== undefined) throw new BusError(refused.code, refused.message);
    const answer = served.handler(input, call);
    if (answer instanceof Promise) answer.then((value) => finish(encodeResult(value))).catch(fail);
    else finish(encodeResult(answer));
  } catch (thrown) {
    fail(thrown);
  }
}
