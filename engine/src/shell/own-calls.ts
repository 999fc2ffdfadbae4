// Calls that the engine itself makes: how they enter the core as requests, and who waits for their answers.
import { BusError, fromWire } from "@iii/sdk";
import type { CallRequest } from "../core/calls.ts";
import type { Outcome } from "../core/effects.ts";
import { type EngineInvocation, Unanswered } from "../ports/host.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export function callRequest(request: EngineInvocation, id: string): CallRequest {
  const { function_id, metadata, traceparent, baggage, origin, depth, timeout_ms } = request;
  const raw = request.raw ?? (request.payload === undefined ? undefined : JSON.stringify(request.payload));
  const payload = raw === undefined ? undefined : encoder.encode(raw);
  return { caller: null, client_id: id, id, function_id, payload, metadata, traceparent, baggage, origin, depth, timeout_ms };
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
      waiting.resolve(payload === undefined ? undefined : JSON.parse(decoder.decode(payload)));
    } catch (cause) {
      waiting.reject(new BusError("invocation_error", "the answer is not JSON", { cause }));
    }
  }

  /** Nobody will answer any more. */
  stop(): void {
    for (const waiting of this.#waiting.values()) waiting.reject(new Unanswered("invocation_stopped", "the engine is stopping"));
    this.#waiting.clear();
  }
}
