// What the core asks its shell to do. Data only.
import type { ErrorBody } from "@iii/sdk";
import type { CallContext, Principal, Splice } from "@iii/sdk/protocol";

/** One binding of a trigger type to a function. `worker_id` is null for bindings that no connection owns. */
export interface BindingData {
  readonly id: string;
  readonly trigger_type: string;
  readonly function_id: string;
  readonly config: unknown;
  readonly metadata: unknown;
  readonly worker_id: string | null;
  /** Who bound it: the function runs with this one's right. */
  readonly principal: Principal;
}

/** A call of a function that the engine serves itself. */
export interface BuiltinRun {
  readonly id: string;
  readonly function_id: string;
  readonly payload: Uint8Array | undefined;
  readonly metadata: unknown;
  readonly context: CallContext;
  readonly parent: string | undefined;
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
  /** The calling connection; null when the engine calls. */
  readonly caller: string | null;
  /** An agent asked for exactly this call; false when a tool of its makes it. */
  readonly direct: boolean;
  readonly principal: Principal;
  /** Who bound the trigger that makes the call. */
  readonly by: Principal | undefined;
}

export interface Outcome {
  readonly payload?: Uint8Array | undefined;
  readonly error?: ErrorBody | undefined;
}

export type WorkerEvent = "worker_connected" | "worker_metadata_updated" | "worker_disconnected";

export type Effect =
  | {
      readonly type: "send";
      readonly conn: string;
      /** The connection whose frame caused this one: paused when the receiver is full. */
      readonly from: string | null;
      readonly head: object;
      readonly payloadKey?: "data" | "result";
      readonly payload?: Uint8Array | string;
      readonly splice?: Splice;
    }
  | { readonly type: "run"; readonly run: BuiltinRun }
  /** A call that the engine made has ended. `answered`: by its executor's own words. */
  | { readonly type: "settle"; readonly id: string; readonly outcome: Outcome; readonly answered: boolean }
  | { readonly type: "drop"; readonly conn: string; readonly reason: string }
  | { readonly type: "functions"; readonly added: readonly string[]; readonly removed: readonly string[] }
  | { readonly type: "worker"; readonly event: WorkerEvent; readonly worker_id: string }
  | { readonly type: "bind"; readonly binding: BindingData }
  | { readonly type: "unbind"; readonly binding: BindingData }
  | { readonly type: "note"; readonly level: "debug" | "warn"; readonly message: string; readonly fields: Record<string, unknown> };
