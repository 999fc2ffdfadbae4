// The orchestrator's functions and triggers, wired to its domain code; and the sweeper's timer.
import { StateEvent } from "@iii/engine/contract";
import { defineFunction, defineWorker, failpoint, SessionId, type Timer } from "@iii/sdk";
import { APPROVALS_SCOPE } from "@iii/worker-approval-gate/contract";
import { z } from "zod";
import { Config } from "./config.ts";
import { runAbort, runStart, TurnStepResult, turnGetState } from "./contract.ts";
import type { Deps } from "./deps.ts";
import { EXPIRY_FUNCTION, expiryMessage, STEP_FUNCTION, stepMessage } from "./journal/commit.ts";
import { TurnStore } from "./journal/store.ts";
import { ownTranscript, treeTranscript } from "./journal/transcript.ts";
import { isTerminal, viewOf } from "./machine/record.ts";
import { abortTurn } from "./run/abort.ts";
import { startRun } from "./run/accept.ts";
import { InLine } from "./run/in-line.ts";
import { Expiry } from "./walk/expiry.ts";
import { Steps } from "./walk/steps.ts";

const turnStep = defineFunction({
  id: STEP_FUNCTION,
  about: "Walk one session's turn as far as it goes. Called by the queue.",
  input: z.object({ session_id: SessionId }),
  output: TurnStepResult,
  internal: true,
});
const onApproval = defineFunction({
  id: "turn::on_approval",
  about: "Wake the turn whose parked call was decided. Called by a state trigger.",
  input: StateEvent,
  output: z.null(),
  internal: true,
});
const onExpiry = defineFunction({
  id: EXPIRY_FUNCTION,
  about: "Wake the turn whose parked call may have expired. Called by the queue.",
  input: z.object({ session_id: SessionId, function_call_id: z.string() }),
  output: z.null(),
  internal: true,
});
const turnSweep = defineFunction({
  id: "turn::sweep",
  about: "Wake every turn that is neither ended, nor waiting for a person, nor on its way.",
  input: z.object({}),
  output: z.object({ woken: z.int() }),
  internal: true,
});

const Decided = z.object({ decision: z.string() });
/** Puts a step message behind whatever runs now. A session whose turn has ended is left alone. */
async function wake(deps: Deps, sid: string): Promise<null> {
  const { read } = await deps.store.record(sid);
  if (read !== undefined && !isTerminal(read.record)) await deps.store.transact({ enqueue: [stepMessage(read.record, false)] });
  return null;
}

/** The queue's clock and this process's may disagree: a call that can still be decided is looked at again when its time is over. */
async function onceExpired(deps: Deps, expiry: Expiry, sid: string, cid: string): Promise<null> {
  const { read } = await deps.store.record(sid);
  const call = read?.record.calls.find((one) => one.id === cid);
  if (read === undefined || call?.phase !== "parked") return null;
  const left = expiry.left(sid, call) ?? 0;
  const message = left > 0 ? expiryMessage(read.record, cid, left) : stepMessage(read.record, false);
  await deps.store.transact({ enqueue: [message] });
  return null;
}

/** A turn as others may see it, with the entries that the transcript does not have yet. */
async function stateOf(deps: Deps, expiry: Expiry, sid: string) {
  const { read } = await deps.store.record(sid);
  if (read === undefined) return null;
  const { record, fault } = read;
  const view = viewOf(record, expiry.of(sid));
  const rows = await deps.store.pending(sid, record.pending);
  const pending = [...rows.values(), ...read.carried];
  const failed = fault === undefined ? {} : { state: "failed" as const, error: { kind: "store_corrupt", message: fault } };
  return { ...view, ...failed, ...(pending.length === 0 ? {} : { pending_entries: pending }) };
}

/** The worker; a test may watch the places where a process can die. */
export function orchestrator(point: Deps["point"] = failpoint) {
  return defineWorker({
    name: "turn-orchestrator",
    config: Config,
    register(on, { config, iii, clock, random, log }) {
      const deps: Deps = {
        iii,
        clock,
        log,
        config,
        point,
        store: new TurnStore(iii, log),
        transcripts: { tree: treeTranscript(iii, log), own: ownTranscript(iii, log) },
        started_at: clock.monotonic(),
      };
      const expiry = new Expiry(clock);
      const steps = new Steps(deps, expiry);
      const line = new InLine();
      on(runStart, (payload, call) => startRun(payload, call, deps, line, () => random.uuid()));
      on(runAbort, ({ session_id, reason = "session_aborted" }) =>
        abortTurn(deps, line, session_id, reason, () => steps.abort(session_id, reason)),
      );
      on(turnGetState, ({ session_id }) => stateOf(deps, expiry, session_id));
      on(turnStep, ({ session_id }, call) => steps.deliver(session_id, call));
      on(onExpiry, ({ session_id, function_call_id }) => onceExpired(deps, expiry, session_id, function_call_id));
      on(turnSweep, () => steps.sweep());
      on(onApproval, async ({ key, new_value }) => {
        const [sid, cid, ...rest] = key.split("/");
        if (sid === undefined || cid === undefined || rest.length > 0 || !Decided.safeParse(new_value).success) return null;
        await deps.point("approval.trigger_before_wake");
        return wake(deps, sid);
      });
      on.trigger({ type: "state", function_id: onApproval.id, config: { scope: APPROVALS_SCOPE, durable: "turn-orchestrator" } });
      return sweeper(deps, steps);
    },
  });
}

function sweeper(deps: Deps, steps: Steps) {
  let timer: Timer | undefined;
  let stopped = false;
  const sweep = async (): Promise<void> => {
    try {
      await steps.sweep();
    } catch (err) {
      deps.log.warn({ err }, "the sweep failed; the next one comes");
    }
    if (!stopped) timer = deps.clock.setTimer(() => void sweep(), deps.config.sweep_interval_ms);
  };
  return {
    ready() {
      void sweep();
    },
    stopping() {
      stopped = true;
      timer?.cancel();
      steps.drain();
    },
    stop() {
      steps.stop();
    },
  };
}

export const worker = orchestrator();
