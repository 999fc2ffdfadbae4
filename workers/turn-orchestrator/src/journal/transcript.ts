// Where a session's messages live: the session tree when the bus has one, otherwise the orchestrator's own rows. One port for both.

import { bytesOf } from "@iii/contracts/storable";
import { stateRows, stateTransact } from "@iii/engine/contract";
import { BusError, type Iii, type Logger, toBusError } from "@iii/sdk";
import { appendBatch, appendEntry, ensureSession, sessionMessages, TranscriptEntry } from "@iii/worker-session/contract";
import { keys, type LostEntry, SESSION_SCOPE } from "../machine/record.ts";
import { replacement } from "./replacement.ts";

/**
 * Appending the same entries twice has one effect. Both throw when the transcript cannot be reached: it is never guessed.
 * `append` resolves with the entries that were refused for good: something that says so stands in their place where that was possible.
 */
export interface Transcript {
  load(sid: string): Promise<TranscriptEntry[]>;
  append(sid: string, entries: readonly TranscriptEntry[]): Promise<LostEntry[]>;
}

/** One call carries so much of a batch, so that no frame becomes too large. */
const CALL_BYTES = 4 * 1024 * 1024;
const CALL_ENTRIES = 500;
/** A transcript that hangs is one that cannot be reached. */
const TIMEOUT_MS = 30_000;
/** Other ids that are tried for an entry whose own id is taken. */
const OTHER_IDS = 8;

const isMissing = (thrown: unknown): boolean => thrown instanceof BusError && thrown.code === "function_not_found";
const isUnknownSession = (thrown: unknown): boolean => thrown instanceof BusError && thrown.code === "session_not_found";

/** Whether the same entry may be taken when it is sent again: the rest is refused for what it is. */
function isPassing(thrown: unknown): boolean {
  const error = toBusError(thrown);
  return error.retryable || isMissing(error) || error.code === "cancelled";
}

/** The session tree is not there now: it may be starting, so the step is to be tried again. */
function unavailable(cause: unknown): BusError {
  return new BusError("store_unavailable", "the session tree holds this session's transcript and nobody serves session-tree::* now", {
    cause,
  });
}

function* inCalls(entries: readonly TranscriptEntry[]): Generator<TranscriptEntry[]> {
  let call: TranscriptEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const size = bytesOf(entry);
    if (call.length > 0 && (bytes + size > CALL_BYTES || call.length >= CALL_ENTRIES)) {
      yield call;
      [call, bytes] = [[], 0];
    }
    call.push(entry);
    bytes += size;
  }
  if (call.length > 0) yield call;
}

/** How one kind of transcript takes entries: a batch in one commit, or one. Throws what the store says. */
interface Writer {
  batch(entries: readonly TranscriptEntry[]): Promise<void>;
  one(entry: TranscriptEntry): Promise<void>;
}

/** One entry, by itself. Undefined: it is stored, under its own id or another. */
async function appendOne(entry: TranscriptEntry, writer: Writer): Promise<LostEntry | undefined> {
  let why = await refusalOf(writer.one(entry));
  for (let n = 2; why?.code === "idempotency_conflict" && n <= OTHER_IDS; n += 1)
    why = await refusalOf(writer.one({ ...entry, entry_id: `${entry.entry_id}~${n}` }));
  if (why === undefined) return undefined;
  const { code, message } = why;
  await refusalOf(writer.one({ entry_id: `${entry.entry_id}~lost`, message: replacement(entry.message, code) }));
  return { entry_id: entry.entry_id, code, message: message.slice(0, 500).toWellFormed() };
}

/** Why it was refused for good; undefined when it was taken. @throws what may pass. */
async function refusalOf(work: Promise<void>): Promise<BusError | undefined> {
  try {
    await work;
    return undefined;
  } catch (thrown) {
    if (isPassing(thrown)) throw thrown;
    return toBusError(thrown);
  }
}

/** In batches, and entry by entry where those are not served or one is refused for good: one bad entry holds nothing up. */
async function appendAll(entries: readonly TranscriptEntry[], writer: Writer): Promise<LostEntry[]> {
  const lost: LostEntry[] = [];
  for (const call of inCalls(entries)) {
    try {
      await writer.batch(call);
    } catch (thrown) {
      if (isPassing(thrown) && !isMissing(thrown)) throw thrown;
      for (const entry of call) lost.push(...[await appendOne(entry, writer)].filter((one) => one !== undefined));
    }
  }
  return lost;
}

export function treeTranscript(iii: Iii, log: Logger): Transcript {
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (thrown) {
      throw isMissing(thrown) ? unavailable(thrown) : thrown;
    }
  };
  const writer = (session_id: string): Writer => {
    // `create` may be unknown to the session worker: then the session is made by hand.
    const send = async (work: () => Promise<unknown>): Promise<void> => {
      try {
        await work();
      } catch (thrown) {
        if (!isUnknownSession(thrown)) throw thrown;
        await iii.trigger(ensureSession, { session_id });
        await work();
      }
    };
    return {
      batch(entries) {
        const entry_ids = entries.map((entry) => entry.entry_id);
        const messages = entries.map((entry) => entry.message);
        return send(() => iii.trigger(appendBatch, { session_id, entry_ids, messages, create: true }, { timeout_ms: TIMEOUT_MS }));
      },
      one: ({ entry_id, message }) =>
        send(() => iii.trigger(appendEntry, { session_id, entry_id, message, create: true }, { timeout_ms: TIMEOUT_MS })),
    };
  };
  return {
    load: (session_id) =>
      guarded(async () => {
        try {
          const { messages, unreadable } = await iii.trigger(sessionMessages, { session_id }, { timeout_ms: TIMEOUT_MS });
          if (unreadable !== undefined)
            log.warn({ session_id, unreadable }, "entries of the transcript cannot be read; the model does not get them");
          return messages;
        } catch (thrown) {
          if (isUnknownSession(thrown)) return []; // the first append makes it
          throw thrown;
        }
      }),
    append: (session_id, entries) => guarded(() => appendAll(entries, writer(session_id))),
  };
}

export function ownTranscript(iii: Iii, log: Logger): Transcript {
  const rows = stateRows(iii, SESSION_SCOPE, TranscriptEntry);
  return {
    async load(sid) {
      const { rows: stored, unreadable } = await rows.list(keys.entry(sid, ""));
      for (const { key, reason } of unreadable)
        log.warn({ key, reason }, "an entry of the transcript cannot be read; the model does not get it");
      return stored.map((row) => row.value);
    },
    append(sid, entries) {
      const batch = async (some: readonly TranscriptEntry[]): Promise<void> => {
        const writes = some.map((entry) => ({ scope: SESSION_SCOPE, key: keys.entry(sid, entry.entry_id), value: entry }));
        await iii.trigger(stateTransact, { writes });
      };
      return appendAll(entries, { batch, one: (entry) => batch([entry]) });
    },
  };
}
