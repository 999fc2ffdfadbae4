// The orchestrator's storage: strict reads of its own keys, and one commit for everything a step writes.

import { stateGetWithRev, stateList, stateTransact, type TransactInput } from "@iii/engine/contract";
import type { Iii } from "@iii/sdk";
import { APPROVALS_SCOPE, type ApprovalRow, approvalKey, ApprovalRow as Row } from "@iii/worker-approval-gate/contract";
import { z } from "zod";
import {
  AbortFlag,
  EMPTY_POINTER,
  keys,
  parseStored,
  QueuedRun,
  QueuePointer,
  RunRequest,
  SESSION_SCOPE,
  TurnRecord,
} from "../machine/record.ts";

export type Transaction = z.input<typeof TransactInput>;
export type Transacted = { ok: true; revs: number[] } | { ok: false; conflict: { scope: string; key: string; rev: number } };

/** A stored value with the revision that a conditional write must name; `value` is undefined when there is none. */
export interface Versioned<T> {
  readonly value: T | undefined;
  readonly rev: number;
}

const ActiveRow = z.object({ key: z.string(), value: z.object({ turn_id: z.string() }), rev: z.number() });

export const ACTIVE_SCOPE = "active_turns";
export const INDEX_SCOPE = "session_index";
export const RESULTS_SCOPE = "results";

async function read<S extends z.ZodType>(iii: Iii, schema: S, scope: string, key: string): Promise<Versioned<z.output<S>>> {
  const { value, rev } = await iii.trigger(stateGetWithRev, { scope, key });
  return { value: value === null || value === undefined ? undefined : parseStored(schema, value, `${scope} ${key}`), rev };
}

/** The runs that wait behind a session's turn. */
export interface Line {
  readonly pointer: Versioned<QueuePointer>;
  /** The run that is next, when one waits. */
  readonly next: QueuedRun | undefined;
}

export interface TurnStore {
  record(sid: string): Promise<Versioned<TurnRecord>>;
  request(sid: string): Promise<Versioned<RunRequest>>;
  abort(sid: string): Promise<Versioned<z.output<typeof AbortFlag>>>;
  pointer(sid: string): Promise<Versioned<QueuePointer>>;
  queued(sid: string, n: number): Promise<Versioned<QueuedRun>>;
  approval(sid: string, cid: string): Promise<Versioned<ApprovalRow>>;
  get<S extends z.ZodType>(schema: S, scope: string, key: string): Promise<Versioned<z.output<S>>>;
  active(): Promise<{ session_id: string; turn_id: string }[]>;
  transact(transaction: Transaction): Promise<Transacted>;
}

export function turnStore(iii: Iii): TurnStore {
  return {
    record: (sid) => read(iii, TurnRecord, SESSION_SCOPE, keys.record(sid)),
    request: (sid) => read(iii, RunRequest, SESSION_SCOPE, keys.request(sid)),
    abort: (sid) => read(iii, AbortFlag, SESSION_SCOPE, keys.abort(sid)),
    pointer: (sid) => read(iii, QueuePointer, SESSION_SCOPE, keys.pointer(sid)),
    queued: (sid, n) => read(iii, QueuedRun, SESSION_SCOPE, keys.queued(sid, n)),
    approval: (sid, cid) => read(iii, Row, APPROVALS_SCOPE, approvalKey(sid, cid)),
    get: (schema, scope, key) => read(iii, schema, scope, key),
    async active() {
      const rows = await iii.trigger(stateList, { scope: ACTIVE_SCOPE, with_keys: true });
      return rows.map((row) => {
        const { key, value } = parseStored(ActiveRow, row, ACTIVE_SCOPE);
        return { session_id: key, turn_id: value.turn_id };
      });
    },
    transact: (transaction) => iii.trigger(stateTransact, transaction),
  };
}

/** Reads the line, for a commit that ends the turn: in the order that makes a later joiner visible. */
export async function lineBehind(store: TurnStore, sid: string): Promise<Line> {
  const pointer = await store.pointer(sid);
  const { head, tail } = pointer.value ?? EMPTY_POINTER;
  const next = head < tail ? (await store.queued(sid, head)).value : undefined;
  return { pointer, next };
}
