// Delivers steps: one walk per session, counts failures, fails the turn after too many, sweeps stalled turns.
import { type Call, toBusError, within } from "@iii/sdk";
import type { TurnStepResult } from "../contract.ts";
import type { Deps } from "../deps.ts";
import { stepMessage } from "../journal/commit.ts";
import { Journal } from "../journal/journal.ts";
import { ACTIVE_SCOPE } from "../journal/store.ts";
import { isTerminal, keys, SESSION_SCOPE, type TurnRecord } from "../machine/record.ts";
import type { Expiry } from "./expiry.ts";
import { Walk, worthRetrying } from "./walk.ts";

/** How long an earlier walk of the session may take to let go. */
const LET_GO_MS = 6_000;

interface Active {
  readonly walk: Walk;
  readonly done: Promise<unknown>;
}

export class Steps {
  readonly #deps: Deps;
  readonly #expiry: Expiry;
  readonly #active = new Map<string, Active>();

  constructor(deps: Deps, expiry: Expiry) {
    this.#deps = deps;
    this.#expiry = expiry;
  }

  /** Serves one step message. Throwing makes the queue deliver it again. */
  async deliver(sid: string, call: Pick<Call, "signal">): Promise<TurnStepResult> {
    await this.#letGo(sid);
    const walk = new Walk(this.#deps, sid, this.#expiry);
    const stop = (): void => walk.stop();
    call.signal.addEventListener("abort", stop, { once: true });
    const run = walk.run();
    const active = { walk, done: run.catch(() => undefined) };
    this.#active.set(sid, active);
    try {
      const end = await run;
      if (end.type === "stale") return { ok: true, skipped: true, reason: "stale" };
      return { ok: true, from_state: end.from, to_state: end.to };
    } catch (thrown) {
      if (walk.leaving || call.signal.aborted) throw thrown; // not the step's fault: another delivery goes on
      return await this.#failed(sid, thrown);
    } finally {
      call.signal.removeEventListener("abort", stop);
      if (this.#active.get(sid) === active) this.#active.delete(sid);
    }
  }

  /** Cancels what this process runs for the session's turn. The abort flag is durable already. */
  abort(sid: string, reason: string): void {
    this.#active.get(sid)?.walk.abort(reason);
  }

  /** Lets running calls end and leaves every turn to a later delivery. */
  drain(): void {
    for (const { walk } of this.#active.values()) walk.drain();
  }

  stop(): void {
    for (const { walk } of this.#active.values()) walk.stop();
  }

  /** Wakes every turn that is neither at its end, nor waiting for a person, nor on its way. */
  async sweep(): Promise<{ woken: number }> {
    let woken = 0;
    for (const session_id of await this.#deps.store.active()) {
      if (this.#active.has(session_id)) continue;
      try {
        if (await this.#wake(session_id)) woken += 1;
      } catch (err) {
        this.#deps.log.error({ err, session_id }, "a turn could not be looked at by the sweeper");
      }
    }
    return { woken };
  }

  async #letGo(sid: string): Promise<void> {
    const earlier = this.#active.get(sid);
    if (earlier === undefined) return;
    earlier.walk.stop();
    await within(this.#deps.clock, LET_GO_MS, earlier.done, () => undefined);
  }

  async #wake(sid: string): Promise<boolean> {
    const { read, rev } = await this.#deps.store.record(sid);
    if (read === undefined || isTerminal(read.record)) {
      const checks = [{ scope: SESSION_SCOPE, key: keys.record(sid), rev }];
      await this.#deps.store.transact({ checks, writes: [{ scope: ACTIVE_SCOPE, key: sid, delete: true }] });
      return false;
    }
    if (read.record.state === "function_awaiting_approval" && !(await this.#hasNews(read.record))) return false;
    await this.#deps.store.transact({ enqueue: [stepMessage(read.record, true)] });
    return true;
  }

  async #hasNews(record: TurnRecord): Promise<boolean> {
    const { session_id, turn_id } = record;
    if ((await this.#deps.store.abort(session_id, turn_id)).reason !== undefined) return true;
    for (const call of record.calls) {
      if (call.phase !== "parked") continue;
      if (this.#expiry.left(session_id, call) === 0) return true;
      const row = await this.#deps.store.approval(session_id, call.id);
      if (row.fault !== undefined || row.value?.status === "decided") return true;
    }
    return false;
  }

  /** Counts a failed step in the record; after too many, or one that cannot get better, the turn is ended as failed. */
  async #failed(sid: string, thrown: unknown): Promise<TurnStepResult> {
    const error = toBusError(thrown);
    this.#deps.log.error({ err: thrown, session_id: sid, code: error.code }, "a step failed");
    const journal = await Journal.open(this.#deps, sid);
    if (journal === undefined) return { ok: true, skipped: true, reason: "stale" };
    const { state: from, ending } = journal.record;
    const failures = journal.record.step_failures + 1;
    const hopeless = failures >= this.#deps.config.max_step_failures;
    if (!hopeless && (worthRetrying(thrown) || ending?.state === "failed")) {
      await journal.countFailure();
      throw thrown;
    }
    const { code: kind, message } = error;
    journal.apply({ type: "broken", now: this.#deps.clock.now(), kind, message, give_up: ending?.state === "failed" });
    await journal.settle();
    return { ok: true, from_state: from, to_state: journal.record.state };
  }
}
