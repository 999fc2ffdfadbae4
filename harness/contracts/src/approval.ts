// A call that waits for a person, and what the person decided: one shape for the gate's rows, the turn's record and its view.
import { CallId, SessionId } from "@iii/sdk";
import { z } from "zod";

export const Decision = z.enum(["allow", "deny", "aborted"]);
export type Decision = z.infer<typeof Decision>;

/** The first decision wins, so it is written once. */
export const DecisionRecord = z.object({
  decision: Decision,
  reason: z.string().nullable(),
  by: z.string(),
  decided_at: z.number(),
});
export type DecisionRecord = z.infer<typeof DecisionRecord>;

export const ParkedCall = z.object({
  session_id: SessionId,
  function_call_id: CallId,
  function_id: z.string(),
  args: z.unknown(),
  /** SHA-256 over RFC 8785 JSON of {session_id, function_call_id, function_id, args}, hex. */
  args_sha256: z.string(),
  rule_id: z.string().optional(),
  requested_at: z.number(),
  /** ms since the epoch; null = never. */
  expires_at: z.number().nullable(),
});
export type ParkedCall = z.infer<typeof ParkedCall>;
