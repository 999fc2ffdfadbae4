// Reads a record of any version: up in numbered steps from an older one, and as `failed` from one that cannot be understood. Pure.
import { issueText } from "@iii/sdk";
import { TranscriptEntry } from "@iii/worker-session/contract";
import { z } from "zod";
import { NOTHING_PENDING, type QueuedRun, RECORD_VERSION, RunRequest, TurnRecord } from "../machine/record.ts";

/** A record as it is stored. `carried`: entries that an older version kept in the record, and that have no rows yet. */
export interface ReadRecord {
  readonly record: TurnRecord;
  readonly carried: readonly TranscriptEntry[];
  /** Why the stored record cannot be read; `record` is then a fresh one in its place, for its turn to end as `failed`. */
  readonly fault?: string;
}

type Raw = Record<string, unknown>;
type Migrated = { readonly raw: Raw; readonly carried: readonly unknown[] };

/** The step at `n` makes version n + 1 of version n. Never changed once it has been released. */
const STEPS: Readonly<Record<number, (raw: Raw) => Migrated>> = {
  1({ pending_entries, retries: _, ...raw }) {
    return { raw: { ...raw, version: 2, pending: NOTHING_PENDING }, carried: Array.isArray(pending_entries) ? pending_entries : [] };
  },
};

function isObject(value: unknown): value is Raw {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function migrated(stored: Raw): Migrated | string {
  let now: Migrated = { raw: stored, carried: [] };
  for (;;) {
    const { version } = now.raw;
    if (version === RECORD_VERSION) return now;
    const step = typeof version === "number" ? STEPS[version] : undefined;
    if (step === undefined) return `its version is ${JSON.stringify(version)}, and this orchestrator reads ${RECORD_VERSION} and older`;
    const next = step(now.raw);
    now = { raw: next.raw, carried: [...now.carried, ...next.carried] };
  }
}

const Entries = z.array(TranscriptEntry);

export function readRecord(session_id: string, stored: unknown): ReadRecord {
  const raw = isObject(stored) ? stored : {};
  const fresh = (fault: string): ReadRecord => ({ record: freshRecord(session_id, raw), carried: [], fault });
  const now = migrated(raw);
  if (typeof now === "string") return fresh(now);
  const record = TurnRecord.safeParse(now.raw);
  if (!record.success) return fresh(issueText(record.error, "the record"));
  const carried = Entries.safeParse(now.carried);
  return carried.success ? { record: record.data, carried: carried.data } : fresh(issueText(carried.error, "its pending entries"));
}

const Loose = z.object({
  turn_id: z.string().catch("t_unreadable"),
  message_id: z.string().catch("unreadable"),
  /** A turn that had ended stays so. */
  state: z.enum(["stopped", "failed"]).or(z.literal("provisioning")).catch("provisioning"),
  turn_count: z.int().nonnegative().catch(0),
  event_seq: z.int().nonnegative().max(90_000_000).catch(1_000_000),
  transcript: z.enum(["tree", "own"]).catch("tree"),
  started_at_ms: z.number().catch(0),
  updated_at_ms: z.number().catch(0),
});

/** A record for a turn of which little is known: what names it is kept where it can be read, so that its end is the end of that turn. */
function freshRecord(session_id: string, raw: Raw): TurnRecord {
  return {
    ...Loose.parse(raw),
    version: RECORD_VERSION,
    session_id,
    max_turns: 1,
    attempt: 0,
    last_assistant: null,
    turn_end_emitted: false,
    calls: [],
    pending: NOTHING_PENDING,
    ending: null,
    abort: null,
    step_failures: 0,
    usage: {},
  };
}

/** A run in line. One that cannot be read still takes its place, and ends as `failed` with `fault`. */
export function readQueued(session_id: string, stored: unknown): QueuedRun & { readonly fault?: string } {
  const raw = isObject(stored) ? stored : {};
  const { record, carried, fault } = readRecord(session_id, raw["record"]);
  const request = RunRequest.safeParse(raw["request"]);
  const entries = raw["entries"] === undefined ? { success: true as const, data: [] } : Entries.safeParse(raw["entries"]);
  const broken = fault ?? (request.success && entries.success ? undefined : "its request or its messages are stored in another shape");
  return {
    record,
    request: request.success ? request.data : { turn_id: record.turn_id, provider: "none", model: "none", mode: null, system_prompt: "" },
    entries: [...carried, ...(entries.success ? entries.data : [])],
    ...(broken === undefined ? {} : { fault: broken }),
  };
}
