// Settles parked calls by compare-and-set. Answers unions and never throws: a decision is a plan, not an accident.
import { argsSha256 } from "@iii/contracts/args-hash";
import { type Clock, type Logger, toBusError } from "@iii/sdk";
import type { DecisionRecord, PendingApproval, ResolveInput, ResolveResult } from "./contract.ts";
import { approvalKey, ResolveInput as ResolveSchema } from "./contract.ts";
import { alreadyDecided, decisionOf, isExpired, resolveRow } from "./resolve.ts";
import type { Rows } from "./rows.ts";

const MAX_ATTEMPTS = 5;
const REMEMBERED = 1_000;

export class Gate {
  readonly #rows: Rows;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Decisions made here lately: the orchestrator deletes a row when it consumes it, and a second click still deserves the first answer. */
  readonly #recent = new Map<string, DecisionRecord>();

  constructor(deps: { rows: Rows; clock: Clock; log: Logger }) {
    this.#rows = deps.rows;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  /** `caller` stands in the record when the request does not say who decides. */
  async resolve(payload: unknown, caller: string): Promise<ResolveResult> {
    const parsed = ResolveSchema.safeParse(payload);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      const field = issue?.path.join(".") || "the payload";
      return { ok: false, error: "invalid_payload", message: `${field}: ${issue?.message ?? "not valid"}` };
    }
    try {
      return await this.#settle(parsed.data, parsed.data.by ?? caller);
    } catch (thrown) {
      const { code, message } = toBusError(thrown);
      this.#log.error({ code, session_id: parsed.data.session_id }, "a decision was not acknowledged by the store");
      return {
        ok: false,
        error: "resume_failed",
        message: `it is not known whether the decision was stored (${code}: ${message}); send it again, the first decision stands`,
      };
    }
  }

  async #settle(request: ResolveInput, by: string): Promise<ResolveResult> {
    const key = approvalKey(request.session_id, request.function_call_id);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { row, rev } = await this.#rows.read(request.session_id, request.function_call_id);
      if (row === undefined) {
        const first = this.#recent.get(key);
        if (first !== undefined) return alreadyDecided(first);
      }
      const hash = row === undefined ? undefined : argsSha256(row);
      const outcome = resolveRow(row, request, { now: this.#clock.now(), hash, by });
      if (outcome.kind === "answer") return outcome.answer;
      if (await this.#rows.replace(outcome.row, rev)) {
        this.#remember(key, decisionOf(outcome.row));
        return { ok: true };
      }
    }
    return { ok: false, error: "resume_failed", message: "the row kept changing; try again" };
  }

  /** Holds that still wait at this moment, oldest first. */
  async pending(session_id: string | undefined): Promise<PendingApproval[]> {
    const now = this.#clock.now();
    const rows = await this.#rows.list(session_id);
    return rows.filter((row) => row.status === "pending" && !isExpired(row, now)).sort((a, b) => a.requested_at - b.requested_at);
  }

  #remember(key: string, record: DecisionRecord): void {
    this.#recent.set(key, record);
    if (this.#recent.size <= REMEMBERED) return;
    const oldest = this.#recent.keys().next().value;
    if (oldest !== undefined) this.#recent.delete(oldest);
  }
}
