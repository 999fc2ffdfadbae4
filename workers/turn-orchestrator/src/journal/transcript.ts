// Where a session's messages live: the session tree when the bus has one, otherwise the orchestrator's own rows. One port for both.
import { stateList, stateSet } from "@iii/engine/contract";
import { BusError, type Iii } from "@iii/sdk";
import { appendBatch, appendEntry, ensureSession, sessionMessages } from "@iii/worker-session/contract";
import { keys, PendingEntry, parseStored, SESSION_SCOPE } from "../machine/record.ts";

/** Appending the same entry twice has one effect. Both throw when the transcript cannot be reached: it is never guessed. */
export interface Transcript {
  load(sid: string): Promise<PendingEntry[]>;
  append(sid: string, entries: readonly PendingEntry[]): Promise<void>;
}

function isMissing(thrown: unknown): boolean {
  return thrown instanceof BusError && thrown.code === "function_not_found";
}

function isUnknownSession(thrown: unknown): boolean {
  return thrown instanceof BusError && thrown.code === "session_not_found";
}

/** The session tree is not there now: it may be starting, so the step is to be tried again. */
function unavailable(cause: unknown): BusError {
  return new BusError("store_unavailable", "the session tree holds this session's transcript and nobody serves session-tree::* now", {
    cause,
  });
}

async function appendToTree(iii: Iii, session_id: string, entries: readonly PendingEntry[]): Promise<void> {
  if (entries.length > 1) {
    try {
      await iii.trigger(appendBatch, {
        session_id,
        entry_ids: entries.map((entry) => entry.entry_id),
        messages: entries.map((entry) => entry.message),
        create: true,
      });
      return;
    } catch (thrown) {
      if (!isMissing(thrown)) throw thrown;
    }
  }
  for (const { entry_id, message } of entries) await iii.trigger(appendEntry, { session_id, entry_id, message, create: true });
}

export function treeTranscript(iii: Iii): Transcript {
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (thrown) {
      throw isMissing(thrown) ? unavailable(thrown) : thrown;
    }
  };
  return {
    load: (session_id) =>
      guarded(async () => {
        try {
          return (await iii.trigger(sessionMessages, { session_id })).messages;
        } catch (thrown) {
          if (isUnknownSession(thrown)) return []; // the first append makes it
          throw thrown;
        }
      }),
    append: (session_id, entries) =>
      guarded(async () => {
        try {
          await appendToTree(iii, session_id, entries);
        } catch (thrown) {
          if (!isUnknownSession(thrown)) throw thrown;
          // A session worker that does not know `create`.
          await iii.trigger(ensureSession, { session_id });
          await appendToTree(iii, session_id, entries);
        }
      }),
  };
}

export function ownTranscript(iii: Iii): Transcript {
  return {
    async load(sid) {
      const rows = await iii.trigger(stateList, { scope: SESSION_SCOPE, prefix: keys.entry(sid, "") });
      return rows.map((row) => parseStored(PendingEntry, row, keys.entry(sid, "")));
    },
    async append(sid, entries) {
      for (const entry of entries)
        await iii.trigger(stateSet, { scope: SESSION_SCOPE, key: keys.entry(sid, entry.entry_id), value: entry });
    },
  };
}
