// The orchestrator's storage: reads of its own keys, and one commit for everything a step writes. One unreadable row costs what it
// stands for and nothing else: each reader here says what it makes of one.
import { type SeenRow, type StoredRow, stateRows, stateTransact, type TransactInput } from "@iii/engine/contract";
import type { Iii, Logger } from "@iii/sdk";
import { APPROVALS_SCOPE, ApprovalRow, approvalKey } from "@iii/worker-approval-gate/contract";
import { TranscriptEntry } from "@iii/worker-session/contract";
import { z } from "zod";
import { RunStartResult } from "../contract.ts";
import {
  AbortFlag,
  EMPTY_POINTER,
  keys,
  type PendingRows,
  type QueuedRun,
  QueuePointer,
  RunRequest,
  SESSION_SCOPE,
} from "../machine/record.ts";
import { type ReadRecord, readQueued, readRecord } from "./versions.ts";

export type Transaction = z.input<typeof TransactInput>;
export type Transacted = { ok: true; revs: number[] } | { ok: false; conflict: { scope: string; key: string; rev: number } };

export const ACTIVE_SCOPE = "active_turns";
export const INDEX_SCOPE = "session_index";
export const RESULTS_SCOPE = "results";

const Receipt = z.object({ fingerprint: z.string(), answer: RunStartResult });
export type Receipt = z.infer<typeof Receipt>;
const IndexRow = z.object({ session_id: z.string(), created_at: z.number(), transcript: z.enum(["tree", "own"]) });
export type IndexRow = z.infer<typeof IndexRow>;
const ActiveRow = z.object({ turn_id: z.string() });

/** The runs that wait behind a session's turn. */
export interface Line {
  readonly pointer: StoredRow<QueuePointer>;
  /** The run that is next, when one waits; `fault` when its row cannot be read. */
  readonly next: (QueuedRun & { readonly fault?: string }) | undefined;
}

export class TurnStore {
  readonly #iii: Iii;
  readonly #log: Logger;
  readonly #rows;
  readonly #approvals;

  constructor(iii: Iii, log: Logger) {
    this.#iii = iii;
    this.#log = log;
    const own = <S extends z.ZodType>(schema: S) => stateRows(iii, SESSION_SCOPE, schema);
    this.#rows = {
      record: own(z.unknown()),
      request: own(RunRequest),
      abort: own(AbortFlag),
      pointer: own(QueuePointer),
      queued: own(z.unknown()),
      pending: own(TranscriptEntry),
      receipt: own(Receipt),
      active: stateRows(iii, ACTIVE_SCOPE, ActiveRow),
      index: stateRows(iii, INDEX_SCOPE, IndexRow),
    };
    this.#approvals = stateRows(iii, APPROVALS_SCOPE, ApprovalRow);
  }

  /** The record, of whatever version; one that cannot be read is a fresh one with a `fault`. */
  async record(sid: string): Promise<{ readonly rev: number; readonly read: ReadRecord | undefined }> {
    const { value, rev } = await this.#rows.record.get(keys.record(sid));
    if (value === undefined) return { rev, read: undefined };
    const read = readRecord(sid, value);
    if (read.fault !== undefined)
      this.#log.error({ session_id: sid, fault: read.fault }, "a turn's record cannot be read; the turn ends as failed");
    return { rev, read };
  }

  /** @throws BusError `store_corrupt`: the turn of a request that cannot be read ends as failed. */
  request(sid: string): Promise<StoredRow<RunRequest>> {
    return this.#rows.request.get(keys.request(sid));
  }

  /** The abort flag of this turn. One that cannot be read stops the turn: it is there to stop something. */
  async abort(sid: string, turn_id: string): Promise<{ readonly rev: number; readonly reason: string | undefined }> {
    const { value, rev, fault } = await this.#rows.abort.see(keys.abort(sid));
    if (fault !== undefined) return { rev, reason: "aborted; the stored reason cannot be read" };
    return { rev, reason: value?.turn_id === turn_id ? value.reason : undefined };
  }

  /** The line's ends. When they cannot be read, they are those of the rows in it. */
  async pointer(sid: string): Promise<StoredRow<QueuePointer>> {
    const { value, rev, fault } = await this.#rows.pointer.see(keys.pointer(sid));
    return fault === undefined ? { value, rev } : { value: await this.#endsOfLine(sid), rev };
  }

  async #endsOfLine(sid: string): Promise<QueuePointer> {
    const { rows } = await this.#rows.queued.list(keys.queuedBelow(sid));
    const numbers = rows.map(({ key }) => Number(key.slice(keys.queuedBelow(sid).length))).filter(Number.isInteger);
    return numbers.length === 0 ? EMPTY_POINTER : { head: Math.min(...numbers), tail: Math.max(...numbers) + 1 };
  }

  /** Reads the line, for a commit that ends the turn: in the order that makes a later joiner visible. */
  async line(sid: string): Promise<Line> {
    const pointer = await this.pointer(sid);
    const { head, tail } = pointer.value ?? EMPTY_POINTER;
    if (head >= tail) return { pointer, next: undefined };
    const { value: stored } = await this.#rows.queued.get(keys.queued(sid, head));
    if (stored !== undefined) return { pointer, next: readQueued(sid, stored) };
    const value = await this.#endsOfLine(sid); // the row is gone: the line is what is left of it
    const { value: first } = await this.#rows.queued.get(keys.queued(sid, value.head));
    return { pointer: { value, rev: pointer.rev }, next: first === undefined ? undefined : readQueued(sid, first) };
  }

  /** The pending entries that a record speaks of, by their numbers; a row that cannot be read is missing. */
  async pending(sid: string, { first, next }: PendingRows): Promise<Map<number, TranscriptEntry>> {
    const numbers = Array.from({ length: next - first }, (_, index) => first + index);
    const rows = await Promise.all(numbers.map(async (n) => [n, await this.#rows.pending.see(keys.pending(sid, n))] as const));
    for (const [n, { fault }] of rows)
      if (fault !== undefined)
        this.#log.error({ session_id: sid, n, reason: fault.reason }, "an entry that waited for the transcript cannot be read");
    return new Map(rows.flatMap(([n, { value }]) => (value === undefined ? [] : [[n, value] as const])));
  }

  /** What pending rows there are, for a session whose record does not tell. */
  async pendingRows(sid: string): Promise<PendingRows> {
    const below = keys.pendingBelow(sid);
    const { rows, unreadable } = await this.#rows.pending.list(below);
    const numbers = [...rows, ...unreadable].map(({ key }) => Number(key.slice(below.length))).filter((n) => Number.isInteger(n) && n > 0);
    if (numbers.length === 0) return { first: 2, next: 2, bytes: 0 };
    return { first: Math.min(...numbers), next: Math.max(...numbers) + 1, bytes: 0 };
  }

  /** What a person decided about a parked call, if anything. */
  approval(sid: string, cid: string): Promise<SeenRow<ApprovalRow>> {
    return this.#approvals.see(approvalKey(sid, cid));
  }

  /** The keys of a session's approval rows, readable or not. */
  async approvalKeys(sid: string): Promise<string[]> {
    const { rows, unreadable } = await this.#approvals.list(approvalKey(sid, ""));
    return [...rows, ...unreadable].map((row) => row.key);
  }

  receipt(sid: string, id: string): Promise<StoredRow<Receipt>> {
    return this.#rows.receipt.get(keys.message(sid, id));
  }

  index(sid: string): Promise<SeenRow<IndexRow>> {
    return this.#rows.index.see(sid);
  }

  /** The sessions whose turn is not at its end. A row that says nothing readable still names its session. */
  async active(): Promise<string[]> {
    const { rows, unreadable } = await this.#rows.active.list();
    return [...rows, ...unreadable].map((row) => row.key);
  }

  transact(transaction: Transaction): Promise<Transacted> {
    return this.#iii.trigger(stateTransact, transaction);
  }
}
