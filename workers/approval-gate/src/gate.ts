// Settles parked calls by compare-and-set. Answers unions and never throws: a decision is a plan, not an accident.
import { argsSha256 } from "@iii/contracts/args-hash";
import { type Clock, issueText, type Logger, toBusError } from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";
import type { PendingApproval, ResolveInput, ResolveResult } from "./contract.ts";
import { ResolveInput as ResolveSchema } from "./contract.ts";
import { Deadlines } from "./deadlines.ts";
import { alreadyDecided, decidedBy, resolveRow } from "./resolve.ts";
import type { Rows } from "./rows.ts";

const MAX_ATTEMPTS = 5;

export class Gate {
  readonly #rows: Rows;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly deadlines: Deadlines;

  constructor(deps: { rows: Rows; clock: Clock; log: Logger }) {
    this.#rows = deps.rows;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.deadlines = new Deadlines(deps.clock);
  }

  /** `caller` is who the engine says it is, and stands in the record; a user whom the request names is a claim beside it. */
  async resolve(payload: unknown, caller: Principal): Promise<ResolveResult> {
    const parsed = ResolveSchema.safeParse(payload);
    if (!parsed.success) return { ok: false, error: "invalid_payload", message: issueText(parsed.error) };
    try {
      return await this.#settle(parsed.data, decidedBy(caller, parsed.data.by));
    } catch (thrown) {
      const { code, message } = toBusError(thrown);
      this.#log.error({ code, session_id: parsed.data.session_id }, "a decision was not acknowledged by the store");
      if (code === "store_corrupt")
        return { ok: false, error: "resume_failed", message: `${message}; it cannot be decided, stop the turn` };
      return {
        ok: false,
        error: "resume_failed",
        message: `it is not known whether the decision was stored (${code}: ${message}); send it again, the first decision stands`,
      };
    }
  }

  async #settle(request: ResolveInput, by: string): Promise<ResolveResult> {
    const { session_id, function_call_id } = request;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { row, rev } = await this.#rows.read(session_id, function_call_id);
      // The orchestrator deletes a row when it consumes it, and a second click still deserves the first answer.
      const first = row === undefined ? await this.#rows.decided(session_id, function_call_id) : undefined;
      if (first !== undefined) return alreadyDecided(first);
      const hash = row === undefined ? undefined : argsSha256(row);
      const expired = row !== undefined && this.deadlines.remaining(row) === 0;
      const outcome = resolveRow(row, request, { now: this.#clock.now(), expired, hash, by });
      if (outcome.kind === "answer") return outcome.answer;
      if (await this.#rows.replace(outcome.row, rev)) return { ok: true };
    }
    return { ok: false, error: "resume_failed", message: "the row kept changing; try again" };
  }

  /** Holds that still wait at this moment, oldest first. */
  async pending(session_id: string | undefined): Promise<PendingApproval[]> {
    const rows = await this.#rows.list(session_id);
    return rows
      .filter((row) => row.status === "pending")
      .map((row) => ({ ...row, remaining_ms: this.deadlines.remaining(row) }))
      .filter(({ remaining_ms }) => remaining_ms !== 0)
      .sort((a, b) => a.requested_at - b.requested_at);
  }
}
