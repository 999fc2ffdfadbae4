// One delivery of a step: walks as far as the turn goes, runs its effects, and commits before and after them. What it holds to:
//   W1  Only what the stored record shows as started has left.
//   W2  The outcome of a call is stored before anything else is waited for.
//   W3  Effects share no fate: one that fails is put aside, and the others run to their own ends, which are stored.
//   W4  The walk ends with its last commit when nothing is left to do, and with the first failure when only failed effects are left.
//   W5  An append that cannot be made is tried again while other effects run.
//   W6  An abort cancels what runs, and never an append.
//   W7  A walk that was told to stop, or was overtaken, writes nothing more.
import { argsSha256 } from "@iii/contracts/args-hash";
import { BusError, sleep, toBusError } from "@iii/sdk";
import { APPROVALS_SCOPE, type ApprovalRow, approvalKey } from "@iii/worker-approval-gate/contract";
import type { Deps } from "../deps.ts";
import { Performer } from "../effects/perform.ts";
import { Journal, Superseded } from "../journal/journal.ts";
import { due, type Effect, type TurnEvent } from "../machine/events.ts";
import type { TurnCall } from "../machine/record.ts";
import type { Expiry } from "./expiry.ts";

type Parked = TurnCall & { phase: "parked" };
/** `walked`: settled with the last commit. `stale`: there was nothing to do, or somebody else did it. */
export type WalkEnd = { type: "walked"; from: string; to: string } | { type: "stale" };

type Outcome = { readonly key: string } & ({ readonly event: TurnEvent } | { readonly thrown: unknown });
type Happened = Outcome | "abort" | "stop" | "drain" | "retry";

interface Running {
  readonly outcome: Promise<Outcome>;
  readonly controller: AbortController;
}

const RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;

export class Walk {
  readonly #deps: Deps;
  readonly #sid: string;
  readonly #expiry: Expiry;
  readonly #performer: Performer;
  readonly #running = new Map<string, Running>();
  /** Effects that could not be done, with the reason. */
  readonly #failed = new Map<string, unknown>();
  readonly #abortAsked = Promise.withResolvers<"abort">();
  readonly #stopAsked = Promise.withResolvers<"stop">();
  readonly #drainAsked = Promise.withResolvers<"drain">();
  #stopping = false;
  #draining = false;
  #drainSeen = false;
  #reason: string | undefined;
  #journal: Journal | undefined;
  #retries = 0;

  constructor(deps: Deps, sid: string, expiry: Expiry) {
    this.#deps = deps;
    this.#sid = sid;
    this.#expiry = expiry;
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
    this.#stopAsked.resolve("stop");
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
    const [journal] = await Promise.all([Journal.open(this.#deps, this.#sid), this.#performer.prepare()]);
    if (journal === undefined) return { type: "stale" };
    this.#journal = journal;
    const from = journal.record.state;
    journal.apply({ type: "woken", now: this.#now() });
    this.#takeAbort();
    try {
      await this.#decisions();
      while (!(await this.#advance()));
      return journal.wrote ? { type: "walked", from, to: journal.record.state } : { type: "stale" };
    } catch (thrown) {
      if (thrown instanceof Superseded) return { type: "stale" };
      throw thrown;
    } finally {
      this.#cancelAll("the step has ended");
    }
  }

  /** Commits what must be durable, starts what is due, waits for one thing to happen. True: nothing is left to do. */
  async #advance(): Promise<boolean> {
    const journal = this.#turn();
    const waiting = due(journal.record).filter((effect) => !this.#running.has(effect.key) && !this.#failed.has(effect.key));
    const idle = waiting.length === 0 && this.#running.size === 0;
    const last = idle && this.#failed.size === 0;
    if (this.#mustCommit(waiting, idle) && !(await this.#commit(waiting, last))) return false;
    if (last) return true;
    if (idle) throw [...this.#failed.values()][0];
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

  #turn(): Journal {
    if (this.#journal === undefined) throw new BusError("NOT_FOUND", `session ${this.#sid} has no turn`);
    return this.#journal;
  }

  #takeAbort(): void {
    const { abortReason } = this.#turn();
    if (abortReason !== undefined) this.#aborted(abortReason);
  }

  #aborted(reason: string): void {
    this.#reason ??= reason;
    this.#turn().apply({ type: "aborted", now: this.#now(), reason });
    for (const [key, { controller }] of this.#running) {
      if (key !== "append") controller.abort(new BusError("cancelled", reason));
    }
  }

  #cancelAll(why: string): void {
    for (const { controller } of this.#running.values()) controller.abort(new BusError("cancelled", why));
  }

  /** Waits for the next thing that happens. */
  async #next(): Promise<void> {
    const over = new AbortController();
    const waits: Promise<Happened>[] = [...this.#running.values()].map((running) => running.outcome);
    waits.push(this.#stopAsked.promise);
    if (this.#turn().record.abort === null) waits.push(this.#abortAsked.promise);
    if (!this.#drainSeen) waits.push(this.#drainAsked.promise);
    if (this.#failed.has("append")) waits.push(this.#pause(over.signal));
    const what = await Promise.race(waits);
    over.abort("over"); // an explicit reason avoids building a DOMException
    this.#take(what);
  }

  async #pause(signal: AbortSignal): Promise<"retry"> {
    await sleep(this.#deps.clock, Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** this.#retries), signal);
    return "retry";
  }

  #take(what: Happened): void {
    if (what === "stop" || this.#stopping) throw new BusError("cancelled", "the step was cancelled");
    if (what === "drain") this.#drainSeen = true;
    else if (what === "abort") this.#aborted(this.#reason ?? "aborted");
    else if (what === "retry") {
      this.#retries += 1;
      this.#failed.delete("append");
    } else this.#ended(what);
  }

  #ended(outcome: Outcome): void {
    this.#running.delete(outcome.key);
    if ("thrown" in outcome) {
      this.#deps.log.warn({ err: outcome.thrown, session_id: this.#sid, effect: outcome.key }, "an effect of a step could not be done");
      this.#failed.set(outcome.key, outcome.thrown);
      return;
    }
    if (outcome.key === "append") this.#retries = 0;
    this.#turn().progressed();
    this.#turn().apply(outcome.event);
  }

  #mustCommit(waiting: readonly Effect[], idle: boolean): boolean {
    const journal = this.#turn();
    if (!journal.dirty) return false;
    return idle || journal.urgent || waiting.some((effect) => journal.unjournalled(effect));
  }

  /** True when it is durable. False: something else changed first and was taken in; look again what is due. */
  async #commit(waiting: readonly Effect[], last: boolean): Promise<boolean> {
    if (this.#stopping) throw new BusError("cancelled", "the step was cancelled");
    const journal = this.#turn();
    const done = await journal.commit({ last, starts: waiting.some((effect) => effect.type === "invoke") });
    this.#takeAbort();
    if (done === "emptied") this.#forsake();
    if (done === "done") this.#expiry.keep(journal.record);
    return done === "done";
  }

  /** Lets go of effects that the record no longer asks for. */
  #forsake(): void {
    const asked = new Set(due(this.#turn().record).map((effect) => effect.key));
    for (const [key, { controller }] of this.#running) {
      if (key === "append" || asked.has(key)) continue;
      controller.abort(new BusError("cancelled", "its call was given up"));
      this.#running.delete(key);
    }
  }

  /** Takes in what was decided about parked calls, and what has expired. */
  async #decisions(): Promise<void> {
    const parked = this.#turn().record.calls.filter((call): call is Parked => call.phase === "parked");
    for (const call of parked) {
      const row = await this.#deps.store.approval(this.#sid, call.id);
      if (row.fault !== undefined) this.#decide(call, "unreadable");
      else if (row.value?.status === "decided") this.#decided(call, row.value);
      else if (this.#expiry.left(this.#sid, call) === 0 && (await this.#claimExpired(call, row.rev))) this.#decide(call, "expired");
    }
  }

  #decide(call: Parked, decision: (TurnEvent & { type: "decided" })["decision"]): void {
    this.#turn().apply({ type: "decided", now: this.#now(), call_id: call.id, decision });
  }

  /** A decision counts for the arguments that the row showed; they are those of the call, or nothing runs. */
  #decided(call: Parked, row: ApprovalRow & { status: "decided" }): void {
    const { session_id, function_call_id, function_id, args, decision, reason, by, decided_at } = row;
    const same =
      argsSha256({ session_id, function_call_id, function_id, args }) === call.args_sha256 && row.args_sha256 === call.args_sha256;
    this.#decide(call, same || decision !== "allow" ? { decision, reason, by, decided_at } : "args_changed");
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
    const { record } = this.#turn();
    if (record.abort !== null && effect.type !== "append") controller.abort(new BusError("cancelled", this.#reason ?? "aborted"));
    const { key } = effect;
    const outcome = this.#performer.perform(effect, this.#turn(), controller.signal).then(
      (event): Outcome => ({ key, event }),
      (thrown: unknown): Outcome => ({ key, thrown }),
    );
    this.#running.set(key, { outcome, controller });
  }
}

/** Whether a failed step is worth another delivery. What cannot be reached now may be reached later; what cannot be read stays so. */
export function worthRetrying(thrown: unknown): boolean {
  const error = toBusError(thrown);
  return error.retryable || error.code === "function_not_found";
}
