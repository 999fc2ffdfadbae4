// Everything the core knows, in one place, and the arguments it was made with.
import type { Access } from "./access.ts";
import type { Connection } from "./connection.ts";
import type { Functions } from "./functions.ts";
import type { Marks } from "./marks.ts";
import type { Invocations } from "./pending.ts";
import type { Triggers } from "./triggers.ts";

export interface CoreLimits {
  /** Calls that one connection may have made, and calls that it may be running; deliveries of queues and what is made in them apart. */
  readonly max_in_flight: number;
  readonly max_depth: number;
  /** Told to every connection, so that it need not find out by being ended. */
  readonly max_frame_bytes: number;
  readonly call_timeout_ms: number;
  readonly max_functions: number;
  readonly max_triggers: number;
  /** How long an executor has to answer after it was told to cancel. */
  readonly cancel_grace_ms: number;
  /** How long past its end an agent's call keeps its place with an executor that does not answer. */
  readonly overdue_ms: number;
}

export interface Core {
  readonly functions: Functions;
  readonly triggers: Triggers;
  readonly connections: Map<string, Connection>;
  readonly invocations: Invocations;
  readonly access: Access;
  readonly marks: Marks;
  readonly limits: CoreLimits;
  /** Monotonic ms. */
  readonly now: () => number;
  /** The date (ms since the epoch) of a monotonic time: deadlines are kept on the monotonic clock and told as dates. */
  readonly dateOf: (at: number) => number;
  /** A fresh UUIDv4. */
  readonly uuid: () => string;
  /** The engine is about to stop: only calls within work that already runs are started. */
  draining: boolean;
}

/** Whether some connection runs a call. */
export function isBusy(core: Core): boolean {
  for (const conn of core.connections.values()) if (conn.running.size > 0) return true;
  return false;
}
