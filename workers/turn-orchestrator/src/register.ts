// The orchestrator's functions and triggers, wired to its domain code; and the sweeper's timer.
import { StateEvent } from "@iii/engine/contract";
import { BusError, defineFunction, defineWorker, failpoint, SessionId, type Timer } from "@iii/sdk";
import { APPROVALS_SCOPE } from "@iii/worker-approval-gate/contract";
import { z } from "zod";
import { runAbort, runStart, TurnStepResult, turnGetState } from "./contract.ts";
import { Config, type Deps } from "./deps.ts";
import { EXPIRY_FUNCTION, STEP_FUNCTION, stepMessage } from "./journal/commit.ts";
import { turnStore } from "./journal/store.ts";
import { ownTranscript, treeTranscript } from "./journal/transcript.ts";
import { isTerminal, keys, SESSION_SCOPE, viewOf } from "./machine/record.ts";
import { startRun } from "./run/accept.ts";
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
const MAX_TRIES = 20;

/** Puts a step message behind whatever runs now. A session whose turn has ended is left alone. */
async function wake(deps: Deps, sid: string): Promise<null> {
  const { value: record } = await deps.store.record(sid);
  if (record !== undefined && !isTerminal(record)) await deps.store.transact({ enqueue: [stepMessage(record, false)] });
  return null;
}

async function abortTurn(deps: Deps, steps: Steps, sid: string, reason: string) {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const [pointer, { value: record }, flag] = await Promise.all([deps.store.pointer(sid), deps.store.record(sid), deps.store.abort(sid)]);
    if (record === undefined || isTerminal(record)) return { session_id: sid, aborted: false, state: record?.state ?? null };
    const { turn_id, state } = record;
    if (flag.value?.turn_id === turn_id) return { session_id: sid, aborted: true, state };
    const done = await deps.store.transact({
      checks: [
        { scope: SESSION_SCOPE, key: keys.pointer(sid), rev: pointer.rev },
        { scope: SESSION_SCOPE, key: keys.abort(sid), rev: flag.rev },
      ],
      writes: [{ scope: SESSION_SCOPE, key: keys.abort(sid), value: { turn_id, reason, at: deps.clock.now() } }],
      enqueue: [stepMessage(record, false)],
    });
    if (!done.ok) continue;
    steps.abort(sid, reason);
    return { session_id: sid, aborted: true, state };
  }
  throw new BusError("session_busy", `session ${sid} changed ${MAX_TRIES} times while its turn was being aborted; send it again`);
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
        store: turnStore(iii),
        transcripts: { tree: treeTranscript(iii), own: ownTranscript(iii) },
        started_at: clock.now(),
      };
      const steps = new Steps(deps);
      on(runStart, (payload, call) => startRun(payload, call, deps, () => random.uuid()));
      on(runAbort, ({ session_id, reason }) => abortTurn(deps, steps, session_id, reason ?? "session_aborted"));
      on(turnGetState, async ({ session_id }) => {
        const { value } = await deps.store.record(session_id);
        return value === undefined ? null : viewOf(value);
      });
      on(turnStep, ({ session_id }, call) => steps.deliver(session_id, call));
      on(onExpiry, ({ session_id }) => wake(deps, session_id));
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
