// The approvals scope through state::*, and beside it the decisions that were made, for when a row is consumed. Reads strictly: a row
// that is not one is an error for who asks for it, and is reported and passed over in a list.
import { stateDelete, stateGet, stateGetWithRev, stateList, stateTransact } from "@iii/engine/contract";
import { BusError, type Iii, issueText, type Logger } from "@iii/sdk";
import { z } from "zod";
import { APPROVALS_SCOPE, ApprovalRow, approvalKey, DECIDED_SCOPE, DecisionRecord } from "./contract.ts";

/** Decisions that are kept; the oldest go. */
const KEPT = 1_000;
/** How many more may gather before they go. */
const SLACK = 100;

type Decided = Extract<ApprovalRow, { status: "decided" }>;

export interface Rows {
  read(session_id: string, function_call_id: string): Promise<{ row: ApprovalRow | undefined; rev: number }>;
  /** Writes, and remembers the decision, if the row still has this revision; false when it has not. */
  replace(row: Decided, rev: number): Promise<boolean>;
  /** The decision about a call whose row is gone. */
  decided(session_id: string, function_call_id: string): Promise<DecisionRecord | undefined>;
  list(session_id: string | undefined): Promise<readonly ApprovalRow[]>;
}

const Listed = z.array(z.object({ key: z.string(), value: z.unknown(), rev: z.number() }));

export function stateRows(iii: Iii, log: Logger): Rows {
  const listed = async (scope: string, prefix?: string) =>
    Listed.parse(await iii.trigger(stateList, { scope, with_keys: true, ...(prefix === undefined ? {} : { prefix }) }));
  let since = KEPT;
  const prune = async (): Promise<void> => {
    since += 1;
    if (since < SLACK) return;
    since = 0;
    const rows = (await listed(DECIDED_SCOPE)).sort((a, b) => b.rev - a.rev);
    for (const { key } of rows.slice(KEPT)) await iii.trigger(stateDelete, { scope: DECIDED_SCOPE, key });
  };
  return {
    async read(session_id, function_call_id) {
      const key = approvalKey(session_id, function_call_id);
      const { value, rev } = await iii.trigger(stateGetWithRev, { scope: APPROVALS_SCOPE, key });
      return { row: value === null || value === undefined ? undefined : parseRow(key, value), rev };
    },
    async replace(row, rev) {
      const key = approvalKey(row.session_id, row.function_call_id);
      const at = { scope: APPROVALS_SCOPE, key };
      const writes = [
        { ...at, value: row },
        { scope: DECIDED_SCOPE, key, value: DecisionRecord.parse(row) },
      ];
      const { ok } = await iii.trigger(stateTransact, { checks: [{ ...at, rev }], writes });
      // The decision stands whatever becomes of older ones.
      if (ok) await prune().catch((cause) => log.warn({ error: String(cause) }, "old decisions could not be dropped"));
      return ok;
    },
    async decided(session_id, function_call_id) {
      const key = approvalKey(session_id, function_call_id);
      const value = (await iii.trigger(stateGet, { scope: DECIDED_SCOPE, key })) ?? undefined;
      const parsed = DecisionRecord.safeParse(value);
      if (!parsed.success && value !== undefined) log.warn({ scope: DECIDED_SCOPE, key }, "a stored decision cannot be read");
      return parsed.data;
    },
    async list(session_id) {
      const rows = await listed(APPROVALS_SCOPE, session_id === undefined ? undefined : `${session_id}/`);
      return rows.flatMap(({ key, value }) => {
        const parsed = ApprovalRow.safeParse(value);
        if (parsed.success) return [parsed.data];
        log.warn({ scope: APPROVALS_SCOPE, key }, `a row is not an approval and is left out: ${issueText(parsed.error, "the row")}`);
        return [];
      });
    },
  };
}

function parseRow(key: string, value: unknown): ApprovalRow {
  const parsed = ApprovalRow.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new BusError(
    "store_corrupt",
    `row '${key}' of scope '${APPROVALS_SCOPE}' is not an approval: ${issueText(parsed.error, "the row")}`,
  );
}
