// approval::*: the row a parked call waits on, and the two functions through which people settle it. Schemas and definitions only.
import { Decision, DecisionRecord, ParkedCall } from "@iii/contracts";
import { CallId, defineFunction, SessionId } from "@iii/sdk";
import { z } from "zod";

export { Decision, DecisionRecord };

export const APPROVALS_SCOPE = "approvals";
/** Decisions, by the same keys; they outlive the rows that they decided. */
export const DECIDED_SCOPE = "approvals_decided";

/** The key of a call's row. Unambiguous because neither id may contain `/`. */
export function approvalKey(session_id: string, function_call_id: string): string {
  return `${session_id}/${function_call_id}`;
}

/**
 * One row of scope `approvals`. The orchestrator creates it `pending` in the commit that parks the call and deletes it in the commit
 * that consumes the decision; only the gate turns `pending` into `decided`.
 */
export const ApprovalRow = z.discriminatedUnion("status", [
  ParkedCall.extend({ status: z.literal("pending") }),
  ParkedCall.extend({ status: z.literal("decided"), ...DecisionRecord.shape }),
]);
export type ApprovalRow = z.infer<typeof ApprovalRow>;

/** `remaining_ms` is counted by the gate and does not follow steps of the wall clock; null = no end. Other gates may leave it out. */
export const PendingApproval = ParkedCall.extend({ remaining_ms: z.exactOptional(z.number().nonnegative().nullable()) });
export type PendingApproval = z.infer<typeof PendingApproval>;

export const ResolveInput = z.object({
  session_id: SessionId,
  function_call_id: CallId,
  decision: Decision,
  reason: z.string().max(4_000).nullish(),
  /** The hash of what was shown: a decision about other arguments is refused. */
  args_sha256: z.string().optional(),
  /** The user whom a worker decides for, as it claims; the record names the caller that the engine knows, and says that this is a claim. */
  by: z.string().min(1).max(256).optional(),
});
export type ResolveInput = z.infer<typeof ResolveInput>;

/** `resume_failed`: the store did not acknowledge the decision. The same request may be sent again: if it was stored, it is `first`. */
export const ResolveResult = z.union([
  z.object({ ok: z.literal(true) }),
  z.object({ ok: z.literal(false), error: z.literal("already_decided"), message: z.string(), first: DecisionRecord }),
  z.object({
    ok: z.literal(false),
    error: z.enum(["invalid_payload", "not_pending", "args_changed", "resume_failed"]),
    message: z.string(),
  }),
]);
export type ResolveResult = z.infer<typeof ResolveResult>;

/** Bad input is answered with `invalid_payload`, never thrown. */
export const resolveApproval = defineFunction({
  id: "approval::resolve",
  about: "Settle one parked call: allow, deny or aborted. The first decision wins.",
  input: ResolveInput,
  output: ResolveResult,
});

export const listPending = defineFunction({
  id: "approval::list_pending",
  about: "The calls that wait for a decision now, oldest first.",
  input: z.object({ session_id: SessionId.optional() }),
  output: z.array(PendingApproval),
  effect: "none",
  parallel: true,
});
