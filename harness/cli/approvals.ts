// `iii approvals`, `approve` and `deny`: a person's decisions from the command line, over the same wire as the page's.
import { BusError, type Iii } from "@iii/sdk";
import { listPending, type PendingApproval, resolveApproval } from "@iii/worker-approval-gate/contract";
import { usage } from "./output.ts";

export type { PendingApproval };

export async function pendingApprovals(iii: Iii): Promise<readonly PendingApproval[]> {
  return iii.trigger(listPending, {});
}

/** The approval that `id` names (a call id, or the beginning of one); without it the only one there is. */
export function pick(rows: readonly PendingApproval[], id: string | undefined): PendingApproval {
  const found = id === undefined ? rows : rows.filter((row) => row.function_call_id === id || row.function_call_id.startsWith(id));
  const only = found[0];
  if (only !== undefined && found.length === 1) return only;
  if (found.length === 0) throw new BusError("NOT_FOUND", id === undefined ? "nothing waits for a decision" : `no pending call '${id}'`);
  throw usage(`say which one: ${found.map((row) => row.function_call_id).join(", ")}`);
}

/** Decides one call, bound to the arguments that were listed. */
export async function decide(iii: Iii, row: PendingApproval, decision: "allow" | "deny", reason: string | undefined): Promise<unknown> {
  const { session_id, function_call_id, args_sha256 } = row;
  const request = { session_id, function_call_id, decision, args_sha256, ...(reason === undefined ? {} : { reason }) };
  const answer = await iii.trigger(resolveApproval, request);
  if (answer.ok) return answer;
  throw new BusError(answer.error === "not_pending" ? "NOT_FOUND" : answer.error, answer.message, { details: answer });
}
