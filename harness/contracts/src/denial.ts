// Why a call was not made, in one shape whoever refused it.
import { z } from "zod";

export const MatchedConstraint = z.object({ field: z.string(), operator: z.enum(["equals", "matches", "anything"]), value: z.unknown() });
export const DenialEnvelope = z.object({
  schema_version: z.literal(1),
  status: z.literal("denied"),
  denied_by: z.enum(["permissions", "user", "gate_unavailable", "expired"]),
  function_id: z.string(),
  rule_id: z.string().optional(),
  rule_action: z.literal("deny").optional(),
  matched_constraint: MatchedConstraint.optional(),
  args_excerpt: z.unknown().optional(),
  /** Absent when a person denied and gave none. */
  reason: z.string().optional(),
});
export type DenialEnvelope = z.infer<typeof DenialEnvelope>;
