// The one gate before a function runs for a model, and the run itself: ask the policy, check the hash, call with the agent's mark.
import { argsSha256 } from "@iii/contracts/args-hash";
import { BusError, redactText, toBusError } from "@iii/sdk";
import { checkPermissions, PermissionDecision } from "@iii/worker-policy/contract";
import { z } from "zod";
import { type Deps, functionInfo, graceLeft, isNotServed, pause, policyFrom, waitServed, whenAborted, within } from "../deps.ts";
import { RESULTS_SCOPE } from "../journal/store.ts";
import type { Outcome, TurnEvent, Verdict } from "../machine/events.ts";
import { idHint } from "../machine/plan.ts";
import type { RunRequest, TurnCall, TurnRecord } from "../machine/record.ts";
import { abortedResult, argsChanged, capResult, decodeAnswer, denied, errorResult, resultLimit, type Settled } from "../machine/results.ts";

/** How long a cancelled executor may take to answer before the turn goes on without it. */
const CANCEL_MS = 6_000;

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
      reason: decision.reason ?? `Denied by permission rule ${rule_id ?? "(unnamed)"}.`,
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
      const answer = PermissionDecision.safeParse(await deps.iii.trigger(checkPermissions.id, payload, { timeout_ms, signal }));
      return answer.success ? answer.data : unavailable(function_id, "its answer was malformed");
    } catch (thrown) {
      if (
        isNotServed(thrown) &&
        graceLeft(deps) > 0 &&
        (await waitServed(deps, checkPermissions.id, Math.min(timeout_ms, graceLeft(deps)), signal))
      )
        return ask();
      const error = toBusError(thrown);
      return unavailable(function_id, `${error.code}: ${error.message}`);
    }
  };
  return within(deps.clock, timeout_ms, ask(), () => unavailable(function_id, `no answer within ${timeout_ms} ms`));
}

function isSettled(value: PermissionDecision | Settled): value is Settled {
  return "result" in value;
}

function hashOf(record: TurnRecord, call: TurnCall): string {
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
      const expires_at = approval_timeout_ms === 0 ? null : deps.clock.now() + approval_timeout_ms;
      const rule = decision.rule_id === undefined ? {} : { rule_id: decision.rule_id };
      return { type: "park", policy, args_sha256: hashOf(place.record, call), expires_at, ...rule };
    }
  }
}

/** A call that a person allowed: the same arguments, and no rule that denies it by now. Null: it may run. */
export async function recheck(
  call: TurnCall & { phase: "released" },
  place: Place,
  deps: Deps,
  signal: AbortSignal,
): Promise<Settled | null> {
  await deps.point("resume.before_dispatch");
  if (hashOf(place.record, call) !== call.args_sha256) return argsChanged(call.function_id);
  const decision = await consult(call, place, deps, signal);
  if (isSettled(decision)) return decision;
  return decision.decision === "deny" ? refusal(call, decision) : null;
}

function notFound(function_id: string): Settled {
  const meant = idHint(function_id);
  const hint =
    meant === undefined
      ? "look the id up with engine::functions::list"
      : `this looks like a skill path; the function is probably '${meant}'`;
  return errorResult("function_not_found", `nobody serves '${function_id}'`, { function: function_id, hint });
}

const UNKNOWN_FATE = new Set(["invocation_stopped", "disconnected", "invocation_error"]);

function failure(call: TurnCall, thrown: unknown, aborted: string | undefined): (Outcome & { type: "result" }) | { type: "lost" } {
  const error = toBusError(thrown);
  const { function_id } = call;
  const as = (settled: Settled): Outcome => ({ type: "result", settled, duration_ms: 0 });
  if (aborted !== undefined) return as(abortedResult(function_id, aborted)) as Outcome & { type: "result" };
  if (UNKNOWN_FATE.has(error.code)) return { type: "lost" };
  return as(errorFor(function_id, error)) as Outcome & { type: "result" };
}

function errorFor(function_id: string, error: BusError): Settled {
  switch (error.code) {
    case "function_not_found":
      return notFound(function_id);
    case "TIMEOUT":
      return errorResult("timeout", error.message, { function: function_id });
    case "FORBIDDEN":
      return denied({ denied_by: "permissions", function_id, reason: error.message });
    default:
      return errorResult("invocation_failed", redactText(error.message), { function: function_id, code: error.code });
  }
}

export function idempotencyKey(record: TurnRecord, call: TurnCall): string {
  return `${record.turn_id}:${call.id}`;
}

/** Dispatches one journalled call and waits for its end. Never throws for what the function does. */
export async function invoke(
  call: TurnCall & { phase: "started" | "probing" },
  place: Place,
  deps: Deps,
  signal: AbortSignal,
): Promise<Outcome> {
  const { record } = place;
  const begun = deps.clock.now();
  const took = (): number => Math.max(0, deps.clock.now() - begun);
  if (call.args_sha256 !== undefined && hashOf(record, call) !== call.args_sha256)
    return { type: "result", settled: argsChanged(call.function_id), duration_ms: 0 };
  await deps.point("effect.started.after_commit_before_exec");
  const reason = (): string | undefined => (signal.aborted ? abortReason(signal) : undefined);
  const unsent = reason();
  if (unsent !== undefined) return { type: "result", settled: abortedResult(call.function_id, unsent), duration_ms: 0 };
  const grace = call.attempt > 1 || call.args_sha256 !== undefined ? deps.config.startup_grace_ms : graceLeft(deps);
  if (grace > 0) await waitServed(deps, call.function_id, grace, signal);
  const metadata = { session_id: record.session_id, function_call_id: call.id, idempotency_key: idempotencyKey(record, call) };
  const options = { origin: "agent" as const, timeout_ms: call.policy.timeout_ms, signal, metadata };
  const answer = deps.iii.trigger(call.function_id, call.args ?? {}, options).then(
    (value): Outcome => ({ type: "result", settled: decodeAnswer(value), duration_ms: took() }),
    (thrown: unknown): Outcome => failure(call, thrown, reason()),
  );
  const abandoned = whenAborted(signal).then(() => pause(deps.clock, CANCEL_MS));
  const silent = abandoned.then(
    (): Outcome => ({ type: "result", settled: abortedResult(call.function_id, reason() ?? "aborted"), duration_ms: took() }),
  );
  const outcome = await Promise.race([answer, silent]);
  await deps.point("effect.after_exec_before_record");
  if (outcome.type === "lost") return outcome;
  const handle = { scope: RESULTS_SCOPE, key: `${record.session_id}/${call.id}` };
  const capped = capResult(outcome.settled, handle, resultLimit(record.calls.length));
  const whole = capped.whole === undefined ? {} : { whole: capped.whole };
  return { type: "result", settled: { result: capped.result, is_error: capped.is_error }, duration_ms: took(), ...whole };
}

function abortReason(signal: AbortSignal): string {
  return signal.reason instanceof BusError ? signal.reason.message : "aborted";
}

const ProbeAnswer = z.object({ happened: z.boolean(), result: z.unknown().optional() });

/** Asks a function's probe whether an interrupted call took effect. No usable answer is `unknown`. */
export async function probe(
  call: TurnCall & { phase: "started" | "probing" },
  place: Place,
  deps: Deps,
  signal: AbortSignal,
): Promise<(TurnEvent & { type: "probed" })["answer"]> {
  const { policy, function_id, args, id } = call;
  if (policy.probe === undefined) return "unknown";
  await waitServed(deps, policy.probe, deps.config.startup_grace_ms, signal);
  const { session_id } = place.record;
  const payload = { function_id, args, session_id, function_call_id: id, idempotency_key: idempotencyKey(place.record, call) };
  try {
    const answer = ProbeAnswer.safeParse(
      await deps.iii.trigger(policy.probe, payload, { origin: "agent", timeout_ms: policy.timeout_ms, signal }),
    );
    if (!answer.success) return "unknown";
    return answer.data.happened ? decodeAnswer(answer.data.result) : "not_run";
  } catch (thrown) {
    deps.log.warn({ err: thrown, probe: policy.probe }, "a probe failed; the call's outcome stays unknown");
    return "unknown";
  }
}
