// policy::*: the one question the gate asks before a tool call. Schemas and definitions only.
import { MatchedConstraint } from "@iii/contracts";
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

/** `session_id`, `function_call_id`, `agent_id` and `mode` are for replacement engines; the shipped one decides on id and arguments. */
export const PermissionRequest = z.object({
  function_id: z.string().min(1),
  args: z.record(z.string(), z.unknown()).optional(),
  session_id: z.string().optional(),
  function_call_id: z.string().optional(),
  agent_id: z.string().optional(),
  mode: z.string().nullish(),
});
export type PermissionRequest = z.infer<typeof PermissionRequest>;

/** A longer answer, in characters of JSON, is no decision. */
export const MAX_DECISION = 65_536;
/** Of a rule's id. */
export const MAX_RULE_ID = 512;

const RuleId = z.string().max(MAX_RULE_ID);

/** `rule_id` is optional because replacement engines may have no rules to name; ours always names one. */
export const PermissionDecision = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("allow"), rule_id: RuleId.optional() }),
  z.object({
    decision: z.literal("deny"),
    rule_id: RuleId.optional(),
    rule_action: z.literal("deny").optional(),
    matched_constraint: MatchedConstraint.optional(),
    reason: z.string().max(4_000).optional(),
  }),
  z.object({ decision: z.literal("needs_approval"), rule_id: RuleId.optional() }),
]);
export type PermissionDecision = z.infer<typeof PermissionDecision>;

export const checkPermissions = defineFunction({
  id: "policy::check_permissions",
  about: "Decide whether a call may run: allow, deny, or needs_approval. The first matching rule decides.",
  input: PermissionRequest,
  output: PermissionDecision,
  effect: "none",
  parallel: true,
});
