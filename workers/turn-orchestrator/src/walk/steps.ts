// Around the walk: one at a time per session, failures counted until the turn is failed, and the waking of what was left lying.
import { BusError, type Call, toBusError } from "@iii/sdk";
import type { TurnStepResult } from "../contract.ts";
import { type Deps, within } from "../deps.ts";
import { stepMessage, transaction } from "../journal/commit.ts";
import { ACTIVE_SCOPE, lineBehind } from "../journal/store.ts";
import { isTerminal, keys, SESSION_SCOPE, type TurnRecord } from "../machine/record.ts";
import { step } from "../machine/step.ts";
import { Walk, worthRetrying } from "./walk.ts";

/** How long an earlier walk of the session may take to let go. */
const LET_GO_MS = 6_000;

interface Active {
  readonly walk: Walk;
  readonly done: Promise<unknown>;
}

export class Steps {
  readonly #deps: Deps;
  readonly #active = new Map<string, Active>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Serves one step message. Throwing makes the queue deliver it again. */
  async deliver(sid: string, call: Pick<Call, "signal">): Promise<TurnStepResult> {
    await this.#letGo(sid);
    const walk = new Walk(this.#deps, sid);
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
    for (const { session_id } of await this.#deps.store.active()) {
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
    const { value: record, rev } = await this.#deps.store.record(sid);
    if (record === undefined || isTerminal(record)) {
      const checks = [{ scope: SESSION_SCOPE, key: keys.record(sid), rev }];
      await this.#deps.store.transact({ checks, writes: [{ scope: ACTIVE_SCOPE, key: sid, delete: true }] });
      return false;
    }
    if (record.state === "function_awaiting_approval" && !(await this.#hasNews(record))) return false;
    await this.#deps.store.transact({ enqueue: [stepMessage(record, true)] });
    return true;
  }

  async #hasNews(record: TurnRecord): Promise<boolean> {
    const { session_id } = record;
    const flag = await this.#deps.store.abort(session_id);
    if (flag.value?.turn_id === record.turn_id) return true;
    for (const call of record.calls) {
      if (call.phase !== "parked") continue;
      if (call.expires_at !== null && call.expires_at <= this.#deps.clock.now()) return true;
      const row = await this.#deps.store.approval(session_id, call.id);
      if (row.value?.status === "decided") return true;
    }
    return false;
  }

  /** Counts a failed step in the record; after too many, or one that cannot get better, the turn is ended as failed. */
  async #failed(sid: string, thrown: unknown): Promise<TurnStepResult> {
    const error = toBusError(thrown);
    this.#deps.log.error({ err: thrown, session_id: sid, code: error.code }, "a step failed");
    const { value: record, rev } = await this.#deps.store.record(sid);
    if (record === undefined || isTerminal(record)) return { ok: true, skipped: true, reason: "stale" };
    const failures = record.step_failures + 1;
    const hopeless = failures >= this.#deps.config.max_step_failures;
    if (!hopeless && (worthRetrying(thrown) || record.ending?.state === "failed")) {
      const value = { ...record, step_failures: failures };
      await this.#deps.store.transact({
        checks: [{ scope: SESSION_SCOPE, key: keys.record(sid), rev }],
        writes: [{ scope: SESSION_SCOPE, key: keys.record(sid), value }],
      });
      throw thrown;
    }
    return await this.#break(record, rev, error);
  }

  async #break(record: TurnRecord, rev: number, error: BusError): Promise<TurnStepResult> {
    const sid = record.session_id;
    const now = this.#deps.clock.now();
    const give_up = record.ending?.state === "failed";
    const next = step(record, { type: "broken", now, kind: error.code, message: error.message, give_up });
    const broken = { ...next.record, step_failures: 0 };
    const abort = await this.#deps.store.abort(sid);
    const line = isTerminal(broken) ? await lineBehind(this.#deps.store, sid) : undefined;
    const parts = transaction({ rev, abortRev: abort.rev, record: broken, outs: next.outs, last: true, line, now });
    const enqueue = isTerminal(broken) ? (parts.enqueue ?? []) : [...(parts.enqueue ?? []), stepMessage(broken, false)];
    const done = await this.#deps.store.transact({ ...parts, enqueue });
    if (!done.ok) throw new BusError("store_unavailable", "the turn changed while it was being ended as failed");
    return { ok: true, from_state: record.state, to_state: broken.state };
  }
}
