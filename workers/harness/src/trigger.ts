// Turns what a client sends into the payload of run::start, and the outcome into a status. Pure.
import { BusError, type ErrorCode, MessageId, parsePayload, SessionId } from "@iii/sdk";
import { RunStartPayload, type RunStartResult } from "@iii/worker-turn-orchestrator/contract";
import { TriggerInput } from "./contract.ts";

/** What stands in for a provider and a model that the client did not name. */
export interface Defaults {
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
}
/** What a run has in any case. The messages are parsed with the request, and once only. */
const Named = RunStartPayload.pick({ provider: true, model: true }).extend({ session_id: SessionId, message_id: MessageId });

export interface Answer {
  readonly status_code: number;
  readonly headers: { "content-type": "application/json" };
  readonly body: unknown;
}

/** @throws BusError `invalid_payload` naming the field. `makeId` is asked for ids that the client left out. */
export function toRun(input: unknown, defaults: Defaults, now: number, makeId: () => string): RunStartPayload & { message_id: string } {
  const given = parsePayload(TriggerInput, withMessages(input, now), "harness::trigger");
  const { payload } = given;
  const session_id = one("session_id", given.session_id, payload.session_id) ?? makeId();
  const message_id = one("message_id", given.message_id, payload.message_id) ?? makeId();
  return { ...payload, ...parsePayload(Named, { ...withDefaults(payload, defaults), session_id, message_id }, "harness::trigger") };
}

/** Whether nothing has to stand in for provider and model: the client names both, or sends what is refused in any case. */
export function isComplete(input: unknown): boolean {
  const payload = isObject(input) ? input["payload"] : undefined;
  return !isObject(payload) || payload["provider"] !== undefined;
}

/** The default model belongs to the default provider only. A missing one is left for the schema to name. */
function withDefaults(payload: Defaults, defaults: Defaults): Defaults {
  const provider = payload.provider ?? defaults.provider;
  return { provider, model: payload.model ?? (provider === defaults.provider ? defaults.model : undefined) };
}

function one(name: string, outer: string | undefined, inner: string | undefined): string | undefined {
  if (outer !== undefined && inner !== undefined && outer !== inner) {
    throw new BusError("invalid_payload", `harness::trigger: '${name}' and 'payload.${name}' differ`);
  }
  return outer ?? inner;
}

/** A message may leave out its time, and give its text as plain text: what people type into curl. */
function withMessages(input: unknown, now: number): unknown {
  if (!isObject(input) || !isObject(input["payload"]) || !Array.isArray(input["payload"]["messages"])) return input;
  const messages = input["payload"]["messages"].map((message: unknown) => {
    if (!isObject(message)) return message;
    const { content } = message;
    return { timestamp: now, ...message, content: typeof content === "string" ? [{ type: "text", text: content }] : content };
  });
  return { ...input, payload: { ...input["payload"], messages } };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A busy session that would not queue is a conflict; everything else that run::start answers is a success. */
export function toAnswer(result: RunStartResult): Answer {
  return answer(result.reason === "session_busy" ? 409 : 200, result);
}

const STATUS: Partial<Record<ErrorCode, number>> = {
  invalid_payload: 400,
  id_invalid: 400,
  deserialization_error: 400,
  provider_unknown: 400,
  model_unknown: 400,
  credential_missing: 400,
  payload_too_large: 413,
  FORBIDDEN: 403,
  session_busy: 409,
  idempotency_conflict: 409,
  function_not_found: 503,
  invocation_stopped: 503,
  store_unavailable: 503,
  STORE_FULL: 507,
  too_many_in_flight: 503,
  TIMEOUT: 504,
};

/** An error as an HTTP client gets it. */
export function toErrorAnswer({ code, message, details }: BusError): Answer {
  const status = Object.hasOwn(STATUS, code) ? STATUS[code as ErrorCode] : undefined;
  return answer(status ?? 500, { error: { code, message, ...(details === undefined ? {} : { details }) } });
}

function answer(status_code: number, body: unknown): Answer {
  return { status_code, headers: { "content-type": "application/json" }, body };
}
