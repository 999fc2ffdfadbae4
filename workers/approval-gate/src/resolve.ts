// What a decision does to a row. Pure: the row and the time come in, the answer and the row to write go out.
import type { Principal } from "@iii/sdk/protocol";
import type { ApprovalRow, DecisionRecord, ResolveInput, ResolveResult } from "./contract.ts";

export type Resolution =
  | { readonly kind: "write"; readonly row: Extract<ApprovalRow, { status: "decided" }> }
  | { readonly kind: "answer"; readonly answer: ResolveResult };

/** `hash` is the hash of the row's own arguments, computed now. An expired hold is no longer pending even before its row is swept. */
export function resolveRow(
  row: ApprovalRow | undefined,
  request: ResolveInput,
  facts: { readonly now: number; readonly expired: boolean; readonly hash: string | undefined; readonly by: string },
): Resolution {
  if (row === undefined) return refuse("not_pending", "no call with these ids waits for a decision");
  if (row.status === "decided") return { kind: "answer", answer: alreadyDecided(decisionOf(row)) };
  if (facts.expired) return refuse("not_pending", "the request expired; start the call again to be asked again");
  if (row.args_sha256 !== facts.hash) return refuse("args_changed", "the stored arguments are not the ones that were asked about");
  if (request.args_sha256 !== undefined && request.args_sha256 !== row.args_sha256) {
    return refuse("args_changed", "the decision names other arguments than the ones that wait; look at the request again");
  }
  const { decision, reason } = request;
  return { kind: "write", row: { ...row, status: "decided", decision, reason: reason ?? null, by: facts.by, decided_at: facts.now } };
}

export function decisionOf(row: Extract<ApprovalRow, { status: "decided" }>): DecisionRecord {
  const { decision, reason, by, decided_at } = row;
  return { decision, reason, by, decided_at };
}

export function alreadyDecided(first: DecisionRecord): ResolveResult {
  return { ok: false, error: "already_decided", message: `already decided: ${first.decision} by ${first.by}`, first };
}

function refuse(error: "not_pending" | "args_changed", message: string): Resolution {
  return { kind: "answer", answer: { ok: false, error, message } };
}

/** Who decided, for the record: what the engine knows of the caller, and the user that it claims, said to be a claim. */
export function decidedBy({ kind, name }: Principal, claimed: string | undefined): string {
  const known = kind === "none" ? "an unproven client" : kind === "operator" ? name : `worker ${name}`;
  return claimed === undefined ? known : `${known} (claims: ${claimed})`;
}
