// A turn as this process holds it: the record with its revisions, what is to be written beside it, and the entries on their way. Every
// write is one commit, conditional on the record and on the abort flag, so that a second walker, or one that slept, changes nothing.
import { BusError, toBusError } from "@iii/sdk";
import type { TranscriptEntry } from "@iii/worker-session/contract";
import type { Deps } from "../deps.ts";
import type { Out } from "../machine/draft.ts";
import { type Effect, needsJournal, type TurnEvent } from "../machine/events.ts";
import { isTerminal, keys, SESSION_SCOPE, type TurnRecord } from "../machine/record.ts";
import { step } from "../machine/step.ts";
import { type Parts, stepMessage, transaction } from "./commit.ts";
import { after, before } from "./points.ts";
import { isContentFault, withoutContent } from "./refused.ts";

/** Somebody else has moved the turn on. */
export class Superseded extends Error {}

/** `changed`: something else changed first and was taken in. `emptied`: what could not be stored has been replaced. Look again what is due. */
export type Committed = "done" | "changed" | "emptied";

interface Kept {
  readonly record: TurnRecord;
  readonly outs: readonly Out[];
}

export class Journal {
  readonly #deps: Deps;
  readonly #sid: string;
  readonly #entries: Map<number, TranscriptEntry>;
  #rev: number;
  #abortRev: number;
  /** What is stored, with what an older version left to be written. */
  #kept: Kept;
  #record: TurnRecord;
  #outs: Out[];
  /** What has happened since `#kept`. */
  #events: TurnEvent[] = [];
  #urgent = false;
  /** An effect has come to its end: earlier failures no longer count. */
  #progress = false;
  #wrote = false;
  /** What is stored is no record: this one stands in its place until it is ended. */
  #unreadable = false;
  /** Set when the abort flag is up for this turn. */
  abortReason: string | undefined;

  private constructor(deps: Deps, kept: Kept, revs: { rev: number; abortRev: number }, entries: Map<number, TranscriptEntry>) {
    this.#deps = deps;
    this.#sid = kept.record.session_id;
    this.#kept = kept;
    this.#record = kept.record;
    this.#outs = [...kept.outs];
    this.#rev = revs.rev;
    this.#abortRev = revs.abortRev;
    this.#entries = entries;
    for (const out of kept.outs) if (out.type === "entry") this.#entries.set(out.n, out.entry);
  }

  /** The session's turn; undefined when it has none or it has ended. One whose record cannot be read is here to end as failed. */
  static async open(deps: Deps, sid: string): Promise<Journal | undefined> {
    const { rev, read } = await deps.store.record(sid);
    if (read === undefined || isTerminal(read.record)) return undefined;
    const kept = read.fault === undefined ? carry(read.record, read.carried) : await Journal.#salvage(deps, read.record);
    const { record } = kept;
    const stored = read.fault === undefined ? read.record.pending : record.pending; // carried entries have no rows yet
    const [abort, entries] = await Promise.all([deps.store.abort(sid, record.turn_id), deps.store.pending(sid, stored)]);
    const journal = new Journal(deps, kept, { rev, abortRev: abort.rev }, entries);
    journal.abortReason = abort.reason;
    journal.#unreadable = read.fault !== undefined;
    if (read.fault !== undefined)
      journal.apply({
        type: "broken",
        now: deps.clock.now(),
        kind: "store_corrupt",
        message: `the turn's record cannot be read: ${read.fault}`,
        give_up: false,
      });
    return journal;
  }

  /** What hangs on a record that cannot be read: entries go on to the transcript, and nobody is asked about its calls any more. */
  static async #salvage(deps: Deps, record: TurnRecord): Promise<Kept> {
    const { session_id } = record;
    const { store } = deps;
    const [pending, approvals, index] = await Promise.all([
      store.pendingRows(session_id),
      store.approvalKeys(session_id),
      store.index(session_id),
    ]);
    const transcript = index.value?.transcript ?? record.transcript;
    const outs = approvals.map((key): Out => ({ type: "unpark", call_id: key.slice(session_id.length + 1) }));
    return { record: { ...record, pending, transcript }, outs };
  }

  get record(): TurnRecord {
    return this.#record;
  }

  get dirty(): boolean {
    return this.#events.length > 0 || this.#outs.length > 0;
  }

  /** Something happened that must be stored before anything else is waited for. */
  get urgent(): boolean {
    return this.#urgent;
  }

  /** Whether anything was stored. */
  get wrote(): boolean {
    return this.#wrote;
  }

  /** The entries that the transcript has not confirmed, oldest first. */
  pending(before = this.#record.pending.next): TranscriptEntry[] {
    const { first } = this.#record.pending;
    return Array.from({ length: before - first }, (_, index) => this.#entries.get(first + index)).filter((entry) => entry !== undefined);
  }

  /** False when the event changed nothing. */
  apply(event: TurnEvent): boolean {
    const next = step(this.#record, event);
    if (next.record === this.#record && next.outs.length === 0) return false;
    this.#record = next.record;
    this.#outs.push(...next.outs);
    this.#events.push(event);
    for (const out of next.outs) if (out.type === "entry") this.#entries.set(out.n, out.entry);
    if (event.type === "returned" || event.type === "probed") this.#urgent = true;
    return true;
  }

  progressed(): void {
    this.#progress = true;
  }

  /** Whether this effect may leave only after another commit. */
  unjournalled(effect: Effect): boolean {
    if (effect.type === "append") return effect.next > this.#kept.record.pending.next || this.#kept.outs.length > 0;
    return this.dirty && needsJournal(effect);
  }

  /** `last`: nothing runs any more, and the delivery is settled in this commit. `more`: written with it. @throws Superseded */
  async commit(options: { last: boolean; starts: boolean; enqueue?: Parts["enqueue"] }): Promise<Committed> {
    try {
      return await this.#commit(options);
    } catch (thrown) {
      if (!isContentFault(thrown) || !this.#empty(toBusError(thrown))) throw thrown;
      return "emptied";
    }
  }

  async #commit({ last, starts, enqueue }: { last: boolean; starts: boolean; enqueue?: Parts["enqueue"] }): Promise<Committed> {
    const { store, clock } = this.#deps;
    const record = this.#progress ? { ...this.#record, step_failures: 0 } : this.#record;
    const ends = isTerminal(record);
    const line = ends ? await store.line(this.#sid) : undefined;
    await this.#point(before({ starts, ends, outs: this.#outs }));
    const input = { rev: this.#rev, abortRev: this.#abortRev, record, outs: this.#outs, last, line, now: clock.now() };
    const parts = transaction(input);
    const done = await store.transact({ ...parts, enqueue: [...parts.enqueue, ...(enqueue ?? [])] });
    if (!done.ok) return await this.#conflict(done.conflict);
    await this.#point(["turn.commit.acked", ...after({ starts, ends, outs: this.#outs })]);
    this.#rev = ends ? 0 : (done.revs[0] ?? 0);
    this.#kept = { record, outs: [] };
    this.#record = record;
    this.#outs = [];
    this.#events = [];
    this.#urgent = false;
    this.#wrote = true;
    for (const n of this.#entries.keys()) if (n < record.pending.first) this.#entries.delete(n);
    return "done";
  }

  async #point(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#deps.point(name);
  }

  async #conflict(conflict: { scope: string; key: string }): Promise<Committed> {
    if (conflict.scope !== SESSION_SCOPE || conflict.key === keys.record(this.#sid)) throw new Superseded();
    if (conflict.key === keys.abort(this.#sid)) {
      const { rev, reason } = await this.#deps.store.abort(this.#sid, this.#record.turn_id);
      this.#abortRev = rev;
      this.abortReason = reason;
    }
    return "changed";
  }

  /** Notes one more failed step, and nothing else. Somebody who moves the turn meanwhile has the word. */
  async countFailure(): Promise<void> {
    if (this.#unreadable) return; // stays as it is until it can be ended
    const { record, outs } = this.#kept;
    const counted = { ...record, step_failures: record.step_failures + 1 };
    const input = {
      rev: this.#rev,
      abortRev: this.#abortRev,
      record: counted,
      outs,
      last: false,
      line: undefined,
      now: this.#deps.clock.now(),
    };
    await this.#deps.store.transact(transaction(input));
  }

  /** Stores what has happened as the last word of this delivery; a turn that has not ended by it is delivered anew. */
  async settle(): Promise<void> {
    this.#progress = true;
    const again = isTerminal(this.#record) ? {} : { enqueue: [stepMessage(this.#record, false)] };
    const done = await this.commit({ last: true, starts: false, ...again });
    if (done !== "done") throw new BusError("store_unavailable", "the turn changed while it was being ended as failed");
  }

  /** Lets the same things happen again, with an error in place of the content that was refused. False: there was no content in them. */
  #empty(why: BusError): boolean {
    const events = this.#events.map((event) => withoutContent(event, why));
    if (events.every((event, index) => event === this.#events[index])) return false;
    this.#deps.log.error({ session_id: this.#sid, err: why }, "content was refused by the store and is replaced by an error");
    this.#record = this.#kept.record;
    this.#outs = [...this.#kept.outs];
    this.#events = [];
    for (const event of events) this.apply(event);
    return true;
  }
}

/** Entries of an older version become rows like all others. */
function carry(record: TurnRecord, carried: readonly TranscriptEntry[]): Kept {
  const { first, next, bytes } = record.pending;
  const outs = carried.map((entry, index): Out => ({ type: "entry", n: next + index, entry }));
  return { record: { ...record, pending: { first, next: next + carried.length, bytes } }, outs };
}
