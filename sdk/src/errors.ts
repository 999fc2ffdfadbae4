// The one error class of the bus and its closed list of codes. Branch on `code`, never on message text.
import { isTooDeep, MAX_DEPTH } from "./depth.ts";

/**
 * Every code, with whether the same request may succeed when it is sent again unchanged.
 * Codes that the iii protocol already has keep its spelling; new ones are snake_case.
 */
const RETRYABLE = {
  // routing and calls
  function_not_found: false,
  invocation_stopped: true,
  invocation_failed: false,
  invocation_error: true,
  channel_send_failed: true,
  channel_closed: true,
  enqueue_error: false,
  FORBIDDEN: false,
  AUTH_ERROR: false,
  TIMEOUT: true,
  cancelled: false,
  disconnected: true,
  too_many_in_flight: true,
  depth_exceeded: false,
  trigger_loop: false,
  // input
  deserialization_error: false,
  serialization_error: false,
  invalid_payload: false,
  invalid_frame: false,
  payload_too_large: false,
  payload_too_deep: false,
  id_invalid: false,
  // registration
  function_owned: false,
  trigger_registration_failed: false,
  trigger_type_not_found: false,
  function_not_invokable: false,
  quota_exceeded: false,
  // storage
  VALUE_TOO_LARGE: false,
  store_unavailable: true,
  STORE_FULL: true,
  store_corrupt: false,
  fenced: false,
  NOT_FOUND: false,
  INVALID_ARGUMENTS: false,
  topic_not_set: false,
  queue_not_set: false,
  message_id_not_set: false,
  // process
  config_invalid: false,
  port_in_use: false,
  data_in_use: false,
  slow_consumer: true,
  // agent domain
  session_busy: true,
  session_not_found: false,
  entry_not_found: false,
  provider_unknown: false,
  model_unknown: false,
  credential_missing: false,
  gate_unavailable: true,
  idempotency_conflict: false,
  path_outside_root: false,
  io_error: false,
} as const;

export type ErrorCode = keyof typeof RETRYABLE;

/** `{code, message, stacktrace?}`: an error as it stands in an `invocationresult` frame, plus our additive `details`. */
export interface ErrorBody {
  code: string;
  message: string;
  stacktrace?: string;
  details?: unknown;
}

/** An error that crosses the bus. `code` is an `ErrorCode` when it is ours and any string when a foreign worker made it. */
export class BusError extends Error {
  override readonly name = "BusError";
  readonly code: ErrorCode | (string & {});
  /** Machine-readable facts: the field, the value, the limit. Never a secret. */
  readonly details: unknown;

  constructor(code: ErrorCode | (string & {}), message: string, options: { details?: unknown; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details;
  }

  /** Whether the same request may succeed later, unchanged. Foreign codes are not retryable. */
  get retryable(): boolean {
    return Object.hasOwn(RETRYABLE, this.code) && RETRYABLE[this.code as ErrorCode];
  }
}

/** Anything thrown, as a BusError: itself if it is one, else `invocation_failed` with the original as its cause. */
export function toBusError(thrown: unknown, fallback: ErrorCode = "invocation_failed"): BusError {
  if (thrown instanceof BusError) return thrown;
  return new BusError(fallback, messageOf(thrown), { cause: thrown });
}

/** What a thrown value says. Anything can be thrown, also what has no text. */
export function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? `${thrown.message}` : String(thrown);
  } catch {
    return "something without a text was thrown";
  }
}

/** Where a thrown value comes from; empty when it does not say. */
export function stackOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? `${thrown.stack ?? ""}` : "";
  } catch {
    return "";
  }
}

/** A thrown value as it goes onto the wire. Details that JSON cannot carry are left out, and the message says so: the answer must leave. */
export function toWire(thrown: unknown): ErrorBody {
  const { code, message, details } = toBusError(thrown);
  if (details === undefined) return { code, message };
  const problem = isTooDeep(details) ? `they nest deeper than ${MAX_DEPTH} levels` : unwritable(details);
  return problem === undefined ? { code, message, details } : { code, message: `${message} (its details are left out: ${problem})` };
}

function unwritable(value: unknown): string | undefined {
  try {
    JSON.stringify(value);
    return undefined;
  } catch (thrown) {
    return messageOf(thrown);
  }
}

/** An error from the wire as a BusError. A malformed body becomes `invocation_error`. */
export function fromWire(body: unknown): BusError {
  if (typeof body !== "object" || body === null) return new BusError("invocation_error", "the error had no body");
  const { code, message, details } = body as Partial<ErrorBody>;
  return new BusError(typeof code === "string" ? code : "invocation_error", typeof message === "string" ? message : "no message", {
    details,
  });
}
