// Every message of the iii protocol, as types: what stands on the wire, and nothing about how it is handled.
// Additions of ours are marked; official clients ignore unknown keys, and nothing they need depends on ours.
import type { ErrorBody } from "../errors.ts";

/** On whose behalf a call runs. `agent` is the mark of a model's tool call: it can be added on the way, never removed. */
export type Origin = "agent" | "worker" | "browser" | "engine";

/**
 * Issued by the engine for the executor of a call (addition of ours). `deadline_ms` is wall-clock; `remaining_ms` is what was left when
 * the call was sent, for waits that a step of the clock must not move. `depth` counts nested calls.
 */
/** Whom the engine knows: a person's key, the token of an entry of config.yaml, or nobody who proved anything. */
export interface Principal {
  readonly kind: "operator" | "entry" | "none";
  readonly name: string;
}

export interface CallContext {
  caller: string;
  origin: Origin;
  deadline_ms: number | null;
  remaining_ms?: number | null;
  depth: number;
  /** Who makes the call, or made the event or message that it serves. Older engines leave it out. */
  principal?: Principal;
  /** The session that the agent's mark carries. */
  session_id?: string;
}

export type Action = { type: "void" } | { type: "enqueue"; queue: string; delay_ms?: number; dedupe_key?: string };

export interface RegisterFunctionFrame {
  type: "registerfunction";
  id: string;
  description?: string;
  request_format?: unknown;
  response_format?: unknown;
  metadata?: unknown;
  invocation?: unknown;
}
export interface UnregisterFunctionFrame {
  type: "unregisterfunction";
  id: string;
}
export interface RegisterTriggerTypeFrame {
  type: "registertriggertype";
  id: string;
  description: string;
  trigger_request_format?: unknown;
  call_request_format?: unknown;
}
export interface UnregisterTriggerTypeFrame {
  type: "unregistertriggertype";
  id: string;
}
export interface RegisterTriggerFrame {
  type: "registertrigger";
  id: string;
  trigger_type: string;
  function_id: string;
  config?: unknown;
  metadata?: unknown;
}
export interface UnregisterTriggerFrame {
  type: "unregistertrigger";
  id: string;
  trigger_type?: string;
}
export interface TriggerRegistrationResultFrame {
  type: "triggerregistrationresult";
  id: string;
  trigger_type: string;
  function_id: string;
  error?: ErrorBody;
}
export interface InvokeFunctionFrame {
  type: "invokefunction";
  /** A UUID. Absent: no reply is wanted. */
  invocation_id?: string;
  function_id: string;
  traceparent?: string;
  baggage?: string;
  action?: Action;
  metadata?: unknown;
  /** Ours, caller to engine: how long the caller waits. 0 = as long as the executor's connection answers. */
  timeout_ms?: number;
  /** Ours, caller to engine: the invocation, running on this connection, that this call is made for. */
  parent?: string;
  /** Ours, caller to engine: a claim that can only lower rights. */
  origin?: "agent";
  /** Ours, caller to engine: the session that a marked call is made for. Believed of whoever runs the turns. */
  session_id?: string;
  /** Ours, engine to executor. */
  context?: CallContext;
  /** The payload. Kept last: the engine routes by the keys before it and copies its bytes through untouched. */
  data?: unknown;
}
export interface InvocationResultFrame {
  type: "invocationresult";
  invocation_id: string;
  function_id: string;
  error?: ErrorBody;
  traceparent?: string;
  baggage?: string;
  /** Kept last, as `data` is. */
  result?: unknown;
}
/** Ours, both ways: the caller no longer wants the result; the executor should stop and still answer. */
export interface CancelFrame {
  type: "cancel";
  invocation_id: string;
}
export interface RegisterServiceFrame {
  type: "registerservice";
  id: string;
  name?: string;
  description?: string;
  parent_service_id?: string;
}
export interface PingFrame {
  type: "ping";
}
export interface PongFrame {
  type: "pong";
}
export interface ReattachFrame {
  type: "reattach";
  previous_worker_id: string;
  reattach_token: string;
}
export interface WorkerRegisteredFrame {
  type: "workerregistered";
  worker_id: string;
  reattach_token?: string;
  /** Ours: the largest message that the engine takes; a larger one ends the connection. */
  max_frame_bytes?: number;
}
export interface ErrorFrame {
  type: "error";
  error: ErrorBody;
}

export type Frame =
  | RegisterFunctionFrame
  | UnregisterFunctionFrame
  | RegisterTriggerTypeFrame
  | UnregisterTriggerTypeFrame
  | RegisterTriggerFrame
  | UnregisterTriggerFrame
  | TriggerRegistrationResultFrame
  | InvokeFunctionFrame
  | InvocationResultFrame
  | CancelFrame
  | RegisterServiceFrame
  | PingFrame
  | PongFrame
  | ReattachFrame
  | WorkerRegisteredFrame
  | ErrorFrame;
