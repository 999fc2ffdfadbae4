// Ids that only people may call. They stand before the file: no rule can allow them to an agent. The engine refuses them too.

import { compileGlob } from "@iii/sdk";
import type { PermissionDecision } from "./contract.ts";

export const HUMAN_ONLY_RULE = "human_only_function";

/** `except` patterns are reads inside an otherwise human-only family. */
const HUMAN_ONLY: readonly { readonly pattern: string; readonly except?: readonly string[] }[] = [
  { pattern: "approval::*", except: ["approval::list_pending"] },
  { pattern: "policy::*" },
  { pattern: "auth::*" },
  { pattern: "run::*" },
  { pattern: "turn::*" },
  { pattern: "budget::*", except: ["budget::list", "budget::get", "budget::check", "budget::usage", "budget::forecast"] },
  { pattern: "worker::*", except: ["worker::list"] },
  { pattern: "configuration::set" },
  { pattern: "harness::trigger" },
  { pattern: "http::static" },
  { pattern: "ui::*" },
];

const COMPILED = HUMAN_ONLY.map(({ pattern, except = [] }) => ({ matches: compileGlob(pattern), except: except.map(compileGlob) }));

/** Whether this id is refused to agents whatever the file says. */
export function isHumanOnly(function_id: string): boolean {
  return COMPILED.some(({ matches, except }) => matches(function_id) && !except.some((test) => test(function_id)));
}

export function humanOnlyDenial(function_id: string): PermissionDecision {
  return {
    decision: "deny",
    rule_id: HUMAN_ONLY_RULE,
    rule_action: "deny",
    reason: `${function_id} can be called by people only; ask the user to do it`,
  };
}
