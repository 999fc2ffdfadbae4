// Stops a session's turn: a durable flag that the turn's next commit meets, whoever walks it.
import { BusError } from "@iii/sdk";
import type { Deps } from "../deps.ts";
import { stepMessage } from "../journal/commit.ts";
import { isTerminal, keys, SESSION_SCOPE } from "../machine/record.ts";
import type { InLine } from "./in-line.ts";

/** Tries beside whoever starts runs, so that nobody waits to stop a turn; and then in line with them. */
const QUICK_TRIES = 5;
const MAX_TRIES = 20;

type Answer = { session_id: string; aborted: boolean; state: string | null };

/** One try. Undefined: something changed meanwhile. */
async function tryAbort(deps: Deps, sid: string, reason: string, aborted: () => void): Promise<Answer | undefined> {
  const [pointer, { read }] = await Promise.all([deps.store.pointer(sid), deps.store.record(sid)]);
  if (read === undefined || isTerminal(read.record)) return { session_id: sid, aborted: false, state: read?.record.state ?? null };
  const { turn_id, state } = read.record;
  const flag = await deps.store.abort(sid, turn_id);
  if (flag.reason !== undefined) return { session_id: sid, aborted: true, state };
  const done = await deps.store.transact({
    checks: [
      { scope: SESSION_SCOPE, key: keys.pointer(sid), rev: pointer.rev },
      { scope: SESSION_SCOPE, key: keys.abort(sid), rev: flag.rev },
    ],
    writes: [{ scope: SESSION_SCOPE, key: keys.abort(sid), value: { turn_id, reason: reason.toWellFormed(), at: deps.clock.now() } }],
    enqueue: [stepMessage(read.record, false)],
  });
  if (!done.ok) return undefined;
  aborted();
  return { session_id: sid, aborted: true, state };
}

/** `aborted`: called when the flag is durable. @throws BusError `session_busy` when another process kept changing the session. */
export async function abortTurn(deps: Deps, line: InLine, sid: string, reason: string, aborted: () => void): Promise<Answer> {
  const within = async (tries: number): Promise<Answer | undefined> => {
    for (let n = 0; n < tries; n += 1) {
      const answer = await tryAbort(deps, sid, reason, aborted);
      if (answer !== undefined) return answer;
    }
    return undefined;
  };
  const answer = (await within(QUICK_TRIES)) ?? (await line.behind(sid, () => within(MAX_TRIES)));
  if (answer !== undefined) return answer;
  throw new BusError("session_busy", `session ${sid} kept changing while its turn was being aborted; send it again`);
}
