// Ids that are closed to agents stand before the file: no rule can allow them. The list is the engine's.
import type { PermissionDecision } from "./contract.ts";

export const HUMAN_ONLY_RULE = "human_only_function";

export function humanOnlyDenial(function_id: string): PermissionDecision {
  return {
    decision: "deny",
    rule_id: HUMAN_ONLY_RULE,
    rule_action: "deny",
    reason: `${function_id} can be called by people only; ask the user to do it`,
  };
}
