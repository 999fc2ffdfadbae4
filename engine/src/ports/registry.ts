// What is on the bus now, as built-ins may read and change it: the catalogue's source.
import type { FunctionDefinition, Wire, WireHandlers } from "@iii/sdk";
import type { z } from "zod";
import type { Announcement } from "../core/connection.ts";
import type { BindingData } from "../core/effects.ts";

export type { Announcement, BindingData };

/** One function that can be called now. Built-ins have a `definition` and no `worker_id`. */
export interface FunctionRow {
  readonly id: string;
  readonly worker_id: string | null;
  /** The built-in's owner, e.g. `iii-state`. */
  readonly owner: string | undefined;
  readonly definition: FunctionDefinition | undefined;
  readonly description: string | undefined;
  readonly metadata: unknown;
  readonly request_format: unknown;
  readonly response_format: unknown;
  /** Connections that registered the id and do not serve it. */
  readonly others: readonly string[];
}

export interface TypeRow {
  readonly id: string;
  readonly description: string;
  readonly worker_id: string | null;
  readonly owner: string | undefined;
  readonly config: z.ZodType | undefined;
  readonly trigger_request_format: unknown;
  readonly call_request_format: unknown;
}

export interface WorkerRow {
  readonly id: string;
  readonly kind: "worker" | "browser";
  readonly announced: Announcement | undefined;
  readonly connected_at: number;
  readonly remote: string | undefined;
  readonly functions: readonly string[];
  readonly active_invocations: number;
}

export interface Registry {
  functions(): FunctionRow[];
  function(id: string): FunctionRow | undefined;
  types(): TypeRow[];
  bindings(): { binding: BindingData; active: boolean }[];
  /** The bindings that run a function. */
  bindingsOf(function_id: string): readonly BindingData[];
  workers(): WorkerRow[];
  /** What one connection said of itself. */
  announced(worker_id: string): Announcement | undefined;
  announce(worker_id: string, announcement: Announcement): boolean;
  /** Binds a trigger that no connection owns. @throws BusError when a built-in type refuses it. */
  bind(wanted: Omit<BindingData, "id" | "worker_id">): BindingData;
  /** Removes a binding that `worker_id` or nobody owns. */
  unbind(id: string, worker_id: string): boolean;
}

/** Takes wires of one path family. */
export interface WireService {
  /** HTTP status of the upgrade: 101 to accept. */
  check(rest: string, query: URLSearchParams): number;
  accept(rest: string, query: URLSearchParams, wire: Wire): WireHandlers | undefined;
}
