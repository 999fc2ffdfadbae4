// The approvals scope through state::*. Reads strictly: a row that is not one is an error, never "nothing there".
import { stateGetWithRev, stateList, stateTransact } from "@iii/engine/contract";
import { BusError, type Iii } from "@iii/sdk";
import { APPROVALS_SCOPE, ApprovalRow, approvalKey } from "./contract.ts";

export interface Rows {
  read(session_id: string, function_call_id: string): Promise<{ row: ApprovalRow | undefined; rev: number }>;
  /** Writes if the row still has this revision; false when it has not. */
  replace(row: ApprovalRow, rev: number): Promise<boolean>;
  list(session_id: string | undefined): Promise<readonly ApprovalRow[]>;
}

export function stateRows(iii: Iii): Rows {
  return {
    async read(session_id, function_call_id) {
      const key = approvalKey(session_id, function_call_id);
      const { value, rev } = await iii.trigger(stateGetWithRev, { scope: APPROVALS_SCOPE, key });
      return { row: value === null || value === undefined ? undefined : parseRow(value), rev };
    },
    async replace(row, rev) {
      const at = { scope: APPROVALS_SCOPE, key: approvalKey(row.session_id, row.function_call_id) };
      const answer = await iii.trigger(stateTransact, { checks: [{ ...at, rev }], writes: [{ ...at, value: row }] });
      return answer.ok;
    },
    async list(session_id) {
      const prefix = session_id === undefined ? {} : { prefix: `${session_id}/` };
      const values = await iii.trigger(stateList, { scope: APPROVALS_SCOPE, ...prefix });
      return values.map(parseRow);
    },
  };
}

function parseRow(value: unknown): ApprovalRow {
  const parsed = ApprovalRow.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new BusError(
    "store_corrupt",
    `a row of scope '${APPROVALS_SCOPE}' is not an approval: ${parsed.error.issues[0]?.message ?? "unknown reason"}`,
  );
}
