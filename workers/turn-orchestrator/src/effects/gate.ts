// The one gate before a function runs for a model: the policy is asked, and a person when it says so. Anything but a clear yes is a no.
import { argsSha256 } from "@iii/contracts/args-hash";
import { unstorable } from "@iii/contracts/storable";
import { wellFormed } from "@iii/contracts/well-formed";
import { toBusError, within } from "@iii/sdk";
import { checkPermissions, MAX_DECISION, PermissionDecision } from "@iii/worker-policy/contract";
import { functionInfo, graceLeft, isNotServed, policyFrom, waitServed } from "../catalogue.ts";
import type { Deps } from "../deps.ts";
import type { Verdict } from "../machine/events.ts";
import { notFound } from "../machine/plan.ts";
import type { RunRequest, TurnCall, TurnRecord } from "../machine/record.ts";
import { cut, denied, type Settled } from "../machine/results.ts";

/** The turn that a call belongs to. */
export interface Place {
  readonly record: TurnRecord;
  readonly request: RunRequest;
}

type Denied = Extract<PermissionDecision, { decision: "deny" }>;

function unavailable(function_id: string, why: string): Settled {
  return denied({
    denied_by: "gate_unavailable",
    function_id,
    reason: `The permission gate gave no usable answer, so the call was refused: ${why}`,
  });
}

function refusal(call: TurnCall, decision: Denied): Settled {
  const { rule_id, rule_action, matched_constraint } = decision;
  return denied(
    {
      denied_by: "permissions",
      function_id: call.function_id,
      reason: cut(decision.reason ?? `Denied by permission rule ${rule_id ?? "(unnamed)"}.`, REASON_CHARS),
      ...(rule_id === undefined ? {} : { rule_id }),
      ...(rule_action === undefined ? {} : { rule_action }),
      ...(matched_constraint === undefined ? {} : { matched_constraint }),
    },
    call.args,
  );
}

/** Asks the gate. Anything but a well-formed answer in time is a refusal. */
async function consult(call: TurnCall, place: Place, deps: Deps, signal: AbortSignal): Promise<PermissionDecision | Settled> {
  const { function_id, id } = call;
  const { session_id } = place.record;
  const { policy_timeout_ms: timeout_ms } = deps.config;
  const payload = { function_id, args: call.args as Record<string, unknown>, session_id, function_call_id: id, mode: place.request.mode };
  const ask = async (): Promise<PermissionDecision | Settled> => {
    try {
      const reply: unknown = await deps.iii.trigger(checkPermissions.id, payload, { timeout_ms, signal });
      const fault = unstorable(reply, MAX_DECISION);
      if (fault !== undefined) return unavailable(function_id, `its answer was too long to be a decision: ${fault.message}`);
      const answer = PermissionDecision.safeParse(wellFormed(reply));
      return answer.success ? answer.data : unavailable(function_id, "its answer was malformed");
    } catch (thrown) {
      if (
        isNotServed(thrown) &&
        graceLeft(deps) > 0 &&
        (await waitServed(deps, checkPermissions.id, Math.min(timeout_ms, graceLeft(deps)), signal))
      )
        return ask();
      const error = toBusError(thrown);
      return unavailable(function_id, cut(`${error.code}: ${error.message}`, REASON_CHARS).toWellFormed());
    }
  };
  return within(deps.clock, timeout_ms, ask(), () => unavailable(function_id, `no answer within ${timeout_ms} ms`));
}

function isSettled(value: PermissionDecision | Settled): value is Settled {
  return "result" in value;
}

/** What a policy says about a refusal goes to the model: so much of it. */
const REASON_CHARS = 4_000;

/** Binds an approval to what was shown. */
export function hashOf(record: TurnRecord, call: TurnCall): string {
  return argsSha256({ session_id: record.session_id, function_call_id: call.id, function_id: call.function_id, args: call.args });
}

/** May this call run, must a person be asked, or is it refused? */
export async function judge(call: TurnCall, place: Place, deps: Deps, signal: AbortSignal): Promise<Verdict> {
  await deps.point("policy.before_ask");
  const [info, decision] = await Promise.all([functionInfo(deps.iii, call.function_id), consult(call, place, deps, signal)]);
  await deps.point("policy.after_reply_before_record");
  if (isSettled(decision)) return { type: "refuse", settled: decision };
  const policy = policyFrom(info?.metadata);
  switch (decision.decision) {
    case "allow":
      return { type: "allow", policy };
    case "deny":
      return { type: "refuse", settled: refusal(call, decision) };
    case "needs_approval": {
      // Nobody is asked about a call that cannot run.
      if (info === undefined && graceLeft(deps) === 0) return { type: "refuse", settled: notFound(call.function_id) };
      const { approval_timeout_ms } = deps.config;
      const expires_in_ms = approval_timeout_ms === 0 ? null : approval_timeout_ms;
      const rule = decision.rule_id === undefined ? {} : { rule_id: decision.rule_id };
      return { type: "park", policy, args_sha256: hashOf(place.record, call), expires_in_ms, ...rule };
    }
  }
}

/** A call that a person allowed: no rule denies it by now. Null: it may run; that its arguments are those that were shown is looked at as it leaves. */
export async function recheck(
  call: TurnCall & { phase: "released" },
  place: Place,
  deps: Deps,
  signal: AbortSignal,
): Promise<Settled | null> {
  await deps.point("resume.before_dispatch");
  const decision = await consult(call, place, deps, signal);
  if (isSettled(decision)) return decision;
  return decision.decision === "deny" ? refusal(call, decision) : null;
}
