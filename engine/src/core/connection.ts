// The live connections and what each of them holds: functions, triggers, calls made and calls running.
import type { Principal } from "@iii/sdk/protocol";
import type { Mark } from "./marks.ts";
import type { Invocation } from "./pending.ts";

/** What a connection said about itself in `engine::workers::register`. */
export interface Announcement {
  readonly name: string | undefined;
  readonly description: string | undefined;
  readonly version: string | undefined;
  readonly runtime: string | undefined;
  readonly os: string | undefined;
  readonly pid: number | undefined;
  readonly isolation: string | undefined;
}

export interface Connection {
  readonly id: string;
  readonly token: string;
  readonly kind: "worker" | "browser";
  readonly remote: string | undefined;
  readonly connected_at: number;
  readonly principal: Principal;
  /** The mark of agents' calls that it runs, shared by an entry's connections; undefined: the calls of others leave no mark on it. */
  mark: Mark | undefined;
  announced: Announcement | undefined;
  /** Ids it registered, also those that another owner serves. */
  readonly functions: Set<string>;
  readonly types: Set<string>;
  readonly bindings: Set<string>;
  /** Calls it made and waits for, by the engine's id. */
  readonly made: Set<string>;
  /** The engine's id by the id that the client chose. */
  readonly calls: Map<string, string>;
  /** Calls it is running, by the engine's id. An agent's call stays here for a while past its deadline. */
  readonly running: Map<string, Invocation>;
  /** How many of them are queues' deliveries, and how many calls it has made within them: their queues bound both. */
  leases: number;
  leased: number;
  /** When something of this connection was last refused and noted, and how much was refused since without a note. */
  readonly refusals: { noted_at: number; unnoted: number };
}

type Spec = Pick<Connection, "id" | "token" | "kind" | "remote" | "connected_at" | "principal" | "mark">;

export function newConnection(spec: Spec): Connection {
  return {
    ...spec,
    announced: undefined,
    functions: new Set(),
    types: new Set(),
    bindings: new Set(),
    made: new Set(),
    calls: new Map(),
    running: new Map(),
    leases: 0,
    leased: 0,
    refusals: { noted_at: Number.NEGATIVE_INFINITY, unnoted: 0 },
  };
}

export function startRunning(conn: Connection, invocation: Invocation): void {
  conn.running.set(invocation.id, invocation);
  if (invocation.lease) conn.leases += 1;
  if (invocation.origin === "agent") conn.mark?.start(invocation);
}

export function stopRunning(conn: Connection, invocation: Invocation, now: number): void {
  if (!conn.running.delete(invocation.id)) return;
  if (invocation.lease) conn.leases -= 1;
  if (invocation.origin === "agent") conn.mark?.stop(invocation, now);
}

export function startMaking(conn: Connection, { id, client_id, leased }: Invocation): void {
  conn.made.add(id);
  if (leased) conn.leased += 1;
  if (client_id !== undefined) conn.calls.set(client_id, id);
}

export function stopMaking(conn: Connection, { id, leased }: Invocation): void {
  if (conn.made.delete(id) && leased) conn.leased -= 1;
}
