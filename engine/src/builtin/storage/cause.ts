// What a piece of stored work, or a trigger's event, remembers of the call that made it.
import type { CallContext, Principal } from "@iii/sdk/protocol";
import type { BuiltinCall } from "../../ports/host.ts";

export interface Cause {
  readonly traceparent: string | undefined;
  /** The trace context of what woke work that runs under a trace of its own. */
  readonly woken_by?: string | undefined;
  readonly baggage: string | undefined;
  readonly origin: CallContext["origin"];
  readonly depth: number;
  /** Whose call it was; absent in work that was stored before there were principals. */
  readonly principal?: Principal | undefined;
  /** The session of the agent's mark. */
  readonly session?: string | undefined;
}

const HIDDEN_BAGGAGE = /^\s*iii\.tag\.(?:kind|display_name|hidden)\s*=/;

/** Baggage as stored work keeps it: without the marks that describe the enqueuing span. */
export function queuedBaggage(baggage: string | null | undefined): string | undefined {
  const kept = (baggage ?? "").split(",").filter((entry) => entry.trim() !== "" && !HIDDEN_BAGGAGE.test(entry));
  return kept.length === 0 ? undefined : kept.join(",");
}

/** What work made by this call remembers. */
export function causeOf(call: BuiltinCall): Cause {
  return {
    traceparent: call.traceparent,
    baggage: queuedBaggage(call.baggage),
    origin: call.context.origin,
    depth: call.context.depth,
    principal: call.context.principal,
    session: call.context.session_id,
  };
}
