// Calls that the engine itself makes: how they enter the core as requests, and who waits for their answers.
import { BusError, fromWire, isTooDeep, MAX_DEPTH, messageOf, toBusError } from "@iii/sdk";
import type { CallRequest } from "../core/calls.ts";
import type { Outcome } from "../core/effects.ts";
import { type EngineInvocation, Unanswered } from "../ports/host.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** A request whose payload has been made into text. @throws BusError `payload_too_deep`, `serialization_error`. */
export function callRequest(request: EngineInvocation, id: string): CallRequest {
  const { function_id, metadata, traceparent, baggage, origin, depth, timeout_ms, principal, by, session, lease = false } = request;
  const raw = request.raw ?? (request.payload === undefined ? undefined : jsonOf(request.payload));
  const payload = raw === undefined ? undefined : encoder.encode(raw);
  return {
    caller: null,
    client_id: id,
    id,
    function_id,
    payload,
    metadata,
    traceparent,
    baggage,
    origin,
    depth,
    timeout_ms,
    principal,
    by,
    session,
    lease,
  };
}

function jsonOf(payload: unknown): string {
  try {
    return JSON.stringify(payload);
  } catch (cause) {
    if (isTooDeep(payload)) throw new BusError("payload_too_deep", "the payload nests too deep to be written", { cause });
    throw new BusError("serialization_error", `the payload cannot be written as JSON: ${messageOf(cause)}`, { cause });
  }
}

/** What an executor answered. @throws BusError `invocation_error`, `payload_too_deep`: nobody can pass on what cannot be written again. */
function answerOf(payload: Uint8Array | undefined): unknown {
  if (payload === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(payload));
  } catch (cause) {
    throw new BusError("invocation_error", "the answer is not JSON", { cause });
  }
  // Each level takes two bytes.
  if (payload.length > 2 * MAX_DEPTH && isTooDeep(value))
    throw new BusError("payload_too_deep", `the answer nests deeper than ${MAX_DEPTH} levels`);
  return value;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: BusError): void;
}

export class OwnCalls {
  readonly #waiting = new Map<string, Waiting>();

  wait(id: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
  }

  settle(id: string, { payload, error }: Outcome, answered: boolean): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    if (error !== undefined) {
      waiting.reject(answered ? fromWire(error) : new Unanswered(error.code, error.message));
      return;
    }
    try {
      waiting.resolve(answerOf(payload));
    } catch (thrown) {
      waiting.reject(toBusError(thrown));
    }
  }

  /** Nobody will answer any more. */
  stop(): void {
    for (const waiting of this.#waiting.values()) waiting.reject(new Unanswered("invocation_stopped", "the engine is stopping"));
    this.#waiting.clear();
  }
}
