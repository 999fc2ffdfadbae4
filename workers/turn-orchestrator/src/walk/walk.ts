// One delivery of a step: load the record, walk as far as it goes, run effects, and commit before and after them.
// Every write is conditional on the record and on the abort flag, so that a second walker, or one that slept, changes nothing.

import { argsSha256 } from "@iii/contracts/args-hash";
import { BusError, toBusError } from "@iii/sdk";
import type { ApprovalRow } from "@iii/worker-approval-gate/contract";
import { APPROVALS_SCOPE, approvalKey } from "@iii/worker-approval-gate/contract";
import type { Deps } from "../deps.ts";
import { Performer } from "../effects/perform.ts";
import { transaction } from "../journal/commit.ts";
import { after, before } from "../journal/points.ts";
import { lineBehind } from "../journal/store.ts";
import type { Out } from "../machine/draft.ts";
import { due, type Effect, needsJournal, type TurnEvent } from "../machine/events.ts";
import { isTerminal, keys, type PendingEntry, SESSION_SCOPE, type TurnCall, type TurnRecord } from "../machine/record.ts";
import { step } from "../machine/step.ts";

type Parked = TurnCall & { phase: "parked" };
/** `walked`: settled with the last commit. `stale`: there was nothing to do, or somebody else did it. */
export type WalkEnd = { type: "walked"; from: string; to: string } | { type: "stale" };

/** Somebody else has moved the turn on. */
class Superseded extends Error {}

interface Running {
  readonly outcome: Promise<{ key: string; event: TurnEvent }>;
  readonly controller: AbortController;
}

export class Walk {
  readonly #deps: Deps;
  readonly #sid: string;
  readonly #performer: Performer;
  readonly #running = new Map<string, Running>();
  readonly #abortAsked = Promise.withResolvers<"abort">();
  readonly #stopped = Promise.withResolvers<"stop">();
  readonly #drainAsked = Promise.withResolvers<"drain">();
  #stopping = false;
  #draining = false;
  #drainSeen = false;
  #reason: string | undefined;
  #record: TurnRecord | undefined;
  #rev = 0;
  #abortRev = 0;
  #outs: Out[] = [];
  #dirty = false;
  #urgent = false;
  #wrote = false;
  /** An effect has come to its end in this delivery: earlier failures no longer count. */
  #progress = false;
  /** Entries that the stored record holds: only they may go to the transcript. */
  #journalled = new Set<string>();

  constructor(deps: Deps, sid: string) {
    this.#deps = deps;
    this.#sid = sid;
    this.#performer = new Performer(deps, sid);
  }

  /** The abort flag is durable: cancels what runs now. The step sees the flag in any case. */
  abort(reason: string): void {
    this.#reason ??= reason;
    this.#abortAsked.resolve("abort");
  }

  /** The delivery is no longer ours: lets go of everything, writes nothing more. */
  stop(): void {
    this.#stopping = true;
    this.#cancelAll("the step was cancelled");
    this.#stopped.resolve("stop");
  }

  /** The process is shutting down: running calls may end, and no model is asked any more. The step will be delivered again. */
  drain(): void {
    this.#draining = true;
    this.#drainAsked.resolve("drain");
  }

  /** Whether this walk was told to leave its turn to a later delivery. */
  get leaving(): boolean {
    return this.#stopping || this.#draining;
  }

  async run(): Promise<WalkEnd> {
    const { store } = this.#deps;
    const [record, abort] = await Promise.all([store.record(this.#sid), store.abort(this.#sid), this.#performer.prepare()]);
    if (record.value === undefined || isTerminal(record.value)) return { type: "stale" };
    this.#rev = record.rev;
    this.#abortRev = abort.rev;
    this.#record = record.value;
    this.#journalled = new Set(record.value.pending_entries.map((entry) => entry.entry_id));
    this.#apply({ type: "woken", now: this.#now() });
    if (abort.value !== undefined && abort.value.turn_id === record.value.turn_id) this.#aborted(abort.value.reason);
    try {
      await this.#decisions();
      return await this.#walk(record.value.state);
    } catch (thrown) {
      if (thrown instanceof Superseded) return { type: "stale" };
      throw thrown;
    } finally {
      this.#cancelAll("the step has ended");
    }
  }

  async #walk(from: string): Promise<WalkEnd> {
    while (!(await this.#advance()));
    return this.#wrote ? { type: "walked", from, to: this.#current().state } : { type: "stale" };
  }

  /** Commits what must be durable, starts what is due, waits for one thing to happen. True: nothing is left to do. */
  async #advance(): Promise<boolean> {
    const waiting = due(this.#current()).filter((effect) => !this.#running.has(effect.key));
    const last = waiting.length === 0 && this.#running.size === 0;
    if (this.#mustCommit(waiting, last) && !(await this.#commit(waiting, last))) return false;
    if (last) return true;
    if (this.#draining && !this.#hasCalls(waiting)) throw new BusError("cancelled", "the process is shutting down");
    for (const effect of waiting) this.#start(effect);
    await this.#next();
    return false;
  }

  #hasCalls(waiting: readonly Effect[]): boolean {
    const isCall = (key: string): boolean => key !== "append" && !key.startsWith("generate:");
    return waiting.some((effect) => isCall(effect.key)) || [...this.#running.keys()].some(isCall);
  }

  #now(): number {
    return this.#deps.clock.now();
  }

  #current(): TurnRecord {
    if (this.#record === undefined) throw new BusError("NOT_FOUND", `session ${this.#sid} has no turn`);
    return this.#record;
  }

  #apply(event: TurnEvent): void {
    const before = this.#current();
    const next = step(before, event);
    if (next.record === before && next.outs.length === 0) return;
    if (next.record.pending_entries !== before.pending_entries) this.#performer.heard(next.record.pending_entries);
    this.#record = next.record;
    this.#outs.push(...next.outs);
    this.#dirty = true;
    if (event.type === "returned" || event.type === "probed") this.#urgent = true;
  }

  #aborted(reason: string): void {
    this.#reason ??= reason;
    this.#apply({ type: "aborted", now: this.#now(), reason });
    for (const [key, { controller }] of this.#running) {
      if (key !== "append") controller.abort(new BusError("cancelled", reason));
    }
  }

  #cancelAll(why: string): void {
    for (const { controller } of this.#running.values()) controller.abort(new BusError("cancelled", why));
  }

  /** Waits for the next thing that happens. */
  async #next(): Promise<void> {
    const outcomes = [...this.#running.values()].map((running) => running.outcome);
    const waits: Promise<{ key: string; event: TurnEvent } | "abort" | "stop" | "drain">[] = [...outcomes, this.#stopped.promise];
    if (this.#current().abort === null) waits.push(this.#abortAsked.promise);
    if (!this.#drainSeen) waits.push(this.#drainAsked.promise);
    const what = await Promise.race(waits);
    if (what === "stop" || this.#stopping) throw new BusError("cancelled", "the step was cancelled");
    if (what === "drain") {
      this.#drainSeen = true;
      return;
    }
    if (what === "abort") {
      this.#aborted(this.#reason ?? "aborted");
      return;
    }
    this.#running.delete(what.key);
    this.#progress = true;
    this.#apply(what.event);
  }

  #mustCommit(waiting: readonly Effect[], last: boolean): boolean {
    if (!this.#dirty) return false;
    return last || this.#urgent || waiting.some((effect) => this.#unjournalled(effect));
  }

  #unjournalled(effect: Effect): boolean {
    if (effect.type === "append") return effect.entries.some((entry) => !this.#journalled.has(entry.entry_id));
    return needsJournal(effect);
  }

  /** True when it is durable. False: something else changed first and was taken in; look again what is due. */
  async #commit(waiting: readonly Effect[], last: boolean): Promise<boolean> {
    if (this.#stopping) throw new BusError("cancelled", "the step was cancelled");
    const record = this.#progress ? { ...this.#current(), step_failures: 0 } : this.#current();
    const ends = isTerminal(record);
    const line = ends ? await lineBehind(this.#deps.store, this.#sid) : undefined;
    const starts = waiting.some((effect) => effect.type === "invoke");
    await this.#point(before({ starts, ends, outs: this.#outs }));
    const input = { rev: this.#rev, abortRev: this.#abortRev, record, outs: this.#outs, last, line, now: this.#now() };
    const done = await this.#deps.store.transact(transaction(input));
    if (!done.ok) return await this.#conflict(done.conflict);
    await this.#point(["turn.commit.acked", ...after({ starts, ends, outs: this.#outs })]);
    this.#record = record;
    this.#rev = ends ? 0 : (done.revs[0] ?? 0);
    this.#journalled = new Set(record.pending_entries.map((entry) => entry.entry_id));
    this.#outs = [];
    this.#dirty = false;
    this.#urgent = false;
    this.#wrote = true;
    return true;
  }

  async #point(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#deps.point(name);
  }

  async #conflict(conflict: { scope: string; key: string }): Promise<boolean> {
    if (conflict.scope !== SESSION_SCOPE || conflict.key === keys.record(this.#sid)) throw new Superseded();
    if (conflict.key === keys.abort(this.#sid)) {
      const flag = await this.#deps.store.abort(this.#sid);
      this.#abortRev = flag.rev;
      if (flag.value !== undefined && flag.value.turn_id === this.#current().turn_id) this.#aborted(flag.value.reason);
    }
    return false;
  }

  /** Takes in what was decided about parked calls, and what has expired. */
  async #decisions(): Promise<void> {
    const parked = this.#current().calls.filter((call): call is Parked => call.phase === "parked");
    for (const call of parked) {
      const row = await this.#deps.store.approval(this.#sid, call.id);
      if (row.value?.status === "decided") this.#decided(call, row.value);
      else if (call.expires_at !== null && call.expires_at <= this.#now() && (await this.#claimExpired(call, row.rev)))
        this.#apply({ type: "decided", now: this.#now(), call_id: call.id, decision: "expired" });
    }
  }

  #decided(call: Parked, row: ApprovalRow & { status: "decided" }): void {
    const { session_id, function_call_id, function_id, args, decision, reason, by, decided_at } = row;
    const shown = argsSha256({ session_id, function_call_id, function_id, args });
    const same = shown === call.args_sha256 && row.args_sha256 === call.args_sha256;
    const taken = { decision, reason, by, decided_at };
    this.#apply({ type: "decided", now: this.#now(), call_id: call.id, decision: same || decision !== "allow" ? taken : "args_changed" });
  }

  /** Expiry and a late decision meet at the row: whoever changes it first wins. */
  async #claimExpired(call: Parked, rev: number): Promise<boolean> {
    if (rev === 0) return true;
    const at = { scope: APPROVALS_SCOPE, key: approvalKey(this.#sid, call.id) };
    const claimed = await this.#deps.store.transact({ checks: [{ ...at, rev }], writes: [{ ...at, delete: true }] });
    if (claimed.ok) return true;
    const row = await this.#deps.store.approval(this.#sid, call.id);
    if (row.value?.status === "decided") this.#decided(call, row.value);
    return false;
  }

  #start(effect: Effect): void {
    const controller = new AbortController();
    if (this.#current().abort !== null && effect.type !== "append") controller.abort(new BusError("cancelled", this.#reason ?? "aborted"));
    const held = (entry: PendingEntry): boolean => this.#journalled.has(entry.entry_id);
    const outcome = this.#performer.perform(effect, this.#current(), controller.signal, held).then((event) => ({ key: effect.key, event }));
    outcome.catch(() => undefined); // seen by whoever waits for it; a walk that has stopped waiting does not care
    this.#running.set(effect.key, { outcome, controller });
  }
}

/** Whether a failed step is worth another delivery. What cannot be reached now may be reached later; what cannot be read stays so. */
export function worthRetrying(thrown: unknown): boolean {
  const error = toBusError(thrown);
  return error.retryable || error.code === "function_not_found";
}
