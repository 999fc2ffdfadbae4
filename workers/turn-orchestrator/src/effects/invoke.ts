// One call that may run: dispatched with the agent's mark, bounded, and its answer made into a result; and the probe of a lost one.
import { BusError, redactText, sleep, toBusError, whenAborted } from "@iii/sdk";
import { z } from "zod";
import { graceLeft, waitServed } from "../catalogue.ts";
import type { Deps } from "../deps.ts";
import { RESULTS_SCOPE } from "../journal/store.ts";
import type { Outcome, TurnEvent } from "../machine/events.ts";
import { notFound } from "../machine/plan.ts";
import type { TurnCall, TurnRecord } from "../machine/record.ts";
import { abortedResult, argsChanged, capResult, decodeAnswer, denied, errorResult, resultLimit, type Settled } from "../machine/results.ts";
import { hashOf, type Place } from "./gate.ts";

/** How long a cancelled executor may take to answer before the turn goes on without it. */
const CANCEL_MS = 6_000;

const UNKNOWN_FATE = new Set(["invocation_stopped", "disconnected", "invocation_error"]);

/** What a call came to that threw: its error as a result, or nothing that anybody knows. */
function failure(call: TurnCall, thrown: unknown, aborted: string | undefined): Settled | "lost" {
  const error = toBusError(thrown);
  const { function_id } = call;
  if (aborted !== undefined) return abortedResult(function_id, aborted);
  return UNKNOWN_FATE.has(error.code) ? "lost" : errorFor(function_id, error);
}

function errorFor(function_id: string, error: BusError): Settled {
  const message = error.message.toWellFormed();
  switch (error.code) {
    case "function_not_found":
      return notFound(function_id);
    case "TIMEOUT":
      return errorResult("timeout", message, { function: function_id });
    case "FORBIDDEN":
      return denied({ denied_by: "permissions", function_id, reason: message });
    default:
      return errorResult("invocation_failed", redactText(message), { function: function_id, code: error.code.toWellFormed() });
  }
}

export function idempotencyKey(record: TurnRecord, call: TurnCall): string {
  return `${record.turn_id}:${call.id}`;
}

type Started = TurnCall & { phase: "started" | "probing" };

/** Sends the call and waits for its end, or for so long after an abort as an executor may take to close. */
async function dispatch(call: Started, record: TurnRecord, deps: Deps, signal: AbortSignal): Promise<Settled | "lost"> {
  const { function_id } = call;
  const metadata = { session_id: record.session_id, function_call_id: call.id, idempotency_key: idempotencyKey(record, call) };
  const options = { origin: "agent" as const, session_id: record.session_id, timeout_ms: call.policy.timeout_ms, signal, metadata };
  const answer = deps.iii
    .trigger(function_id, call.args ?? {}, options)
    .then(decodeAnswer, (thrown: unknown) => failure(call, thrown, signal.aborted ? abortReason(signal) : undefined));
  const silent = whenAborted(signal)
    .then(() => sleep(deps.clock, CANCEL_MS))
    .then(() => abortedResult(function_id, abortReason(signal)));
  return await Promise.race([answer, silent]);
}

/** Why a journalled call does not leave after all; undefined when it may. */
function unsent(call: Started, record: TurnRecord, signal: AbortSignal): Settled | undefined {
  if (call.args_sha256 !== undefined && hashOf(record, call) !== call.args_sha256) return argsChanged(call.function_id);
  return signal.aborted ? abortedResult(call.function_id, abortReason(signal)) : undefined;
}

/** Dispatches one journalled call and waits for its end. Never throws for what the function does. */
export async function invoke(call: Started, { record }: Place, deps: Deps, signal: AbortSignal): Promise<Outcome> {
  const begun = deps.clock.monotonic();
  await deps.point("effect.started.after_commit_before_exec");
  const not = unsent(call, record, signal);
  if (not !== undefined) return { type: "result", settled: not, duration_ms: 0 };
  const grace = call.attempt > 1 || call.args_sha256 !== undefined ? deps.config.startup_grace_ms : graceLeft(deps);
  if (grace > 0) await waitServed(deps, call.function_id, grace, signal);
  const outcome = await dispatch(call, record, deps, signal);
  await deps.point("effect.after_exec_before_record");
  if (outcome === "lost") return { type: "lost" };
  const handle = { scope: RESULTS_SCOPE, key: `${record.session_id}/${call.id}` };
  const { whole, ...settled } = capResult(outcome, handle, resultLimit(record.calls.length));
  const duration_ms = Math.max(0, deps.clock.monotonic() - begun);
  return { type: "result", settled, duration_ms, ...(whole === undefined ? {} : { whole }) };
}

function abortReason(signal: AbortSignal): string {
  return signal.reason instanceof BusError ? signal.reason.message : "aborted";
}

const ProbeAnswer = z.object({ happened: z.boolean(), result: z.unknown().optional() });

/** Asks a function's probe whether an interrupted call took effect. No usable answer is `unknown`. */
export async function probe(
  call: Started,
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
      await deps.iii.trigger(policy.probe, payload, { origin: "agent", session_id, timeout_ms: policy.timeout_ms, signal }),
    );
    if (!answer.success) return "unknown";
    if (!answer.data.happened) return "not_run";
    const handle = { scope: RESULTS_SCOPE, key: `${session_id}/${id}` };
    const { whole: _, ...settled } = capResult(decodeAnswer(answer.data.result), handle, resultLimit(place.record.calls.length), false);
    return settled;
  } catch (thrown) {
    deps.log.warn({ err: thrown, probe: policy.probe }, "a probe failed; the call's outcome stays unknown");
    return "unknown";
  }
}
