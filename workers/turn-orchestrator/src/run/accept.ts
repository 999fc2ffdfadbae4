// Accepts a run: checks what it asks for, then stores request, messages, first record and first step in one commit.
import { createHash } from "node:crypto";
import { providerStream } from "@iii/contracts";
import { argsSha256 } from "@iii/contracts/args-hash";
import { unstorable } from "@iii/contracts/storable";
import { wellFormed } from "@iii/contracts/well-formed";
import { BusError, type Call, formatBaggage, parseBaggage } from "@iii/sdk";
import { appendEntry, type TranscriptEntry } from "@iii/worker-session/contract";
import { graceLeft, servedNow, waitServed } from "../catalogue.ts";
import type { RunStartPayload, RunStartResult } from "../contract.ts";
import type { Deps } from "../deps.ts";
import { beginRun, emptyParts, type Parts, stepMessage } from "../journal/commit.ts";
import { INDEX_SCOPE } from "../journal/store.ts";
import {
  EMPTY_POINTER,
  isTerminal,
  keys,
  NOTHING_PENDING,
  type QueuedRun,
  RECORD_VERSION,
  SESSION_SCOPE,
  type TurnRecord,
} from "../machine/record.ts";
import type { InLine } from "./in-line.ts";
import { systemPrompt } from "./prompt.ts";
import { checkModel, checkProvider } from "./validate.ts";

const MAX_TRIES = 30;
/** The new messages of one run, as JSON: a run that waits is one row. */
const MESSAGES_BYTES = 8 * 1024 * 1024;

interface Names {
  readonly message_id: string;
  readonly turn_id: string;
  /** Every key under which the answer is kept. */
  readonly receipts: readonly string[];
  readonly fingerprint: string;
}

function hashed(prefix: string, ...parts: string[]): string {
  return prefix + createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16);
}

/** The same request gives the same names. The time stamps of its messages do not count: a client that repeats itself stamps anew. */
function nameRun(payload: RunStartPayload, uuid: () => string): Names {
  const { session_id, message_id, idempotency_key, if_busy: _, ...asked } = payload;
  const id = message_id ?? (idempotency_key === undefined ? uuid() : hashed("i_", session_id, idempotency_key));
  const messages = payload.messages.map(({ timestamp: _at, ...message }) => message);
  return {
    message_id: id,
    turn_id: hashed("t_", session_id, id),
    receipts: [...new Set([id, ...(idempotency_key === undefined ? [] : [idempotency_key])])],
    fingerprint: argsSha256({
      session_id,
      function_call_id: "",
      function_id: "run::start",
      args: JSON.parse(JSON.stringify({ ...asked, messages })),
    }),
  };
}

/** The first answer, when this request has had one. @throws BusError `idempotency_conflict` when the key stood for another request. */
async function earlier(payload: RunStartPayload, names: Names, deps: Deps): Promise<RunStartResult | undefined> {
  const found = await Promise.all(names.receipts.map((id) => deps.store.receipt(payload.session_id, id)));
  for (const { value } of found) {
    if (value === undefined) continue;
    if (value.fingerprint === names.fingerprint) return { ...value.answer, deduplicated: true };
    throw new BusError("idempotency_conflict", "this message_id or idempotency_key was already used for another request in this session", {
      details: { session_id: payload.session_id, receipts: names.receipts },
    });
  }
  return undefined;
}

async function chooseTranscript(served: ReadonlySet<string>, deps: Deps): Promise<"tree" | "own"> {
  const { transcript } = deps.config;
  if (transcript !== "auto") return transcript;
  if (served.has(appendEntry.id)) return "tree";
  return (await waitServed(deps, appendEntry.id, graceLeft(deps))) ? "tree" : "own";
}

/** Baggage of the run: what came in, with the ids by which its trace is found. */
function baggageOf(payload: RunStartPayload, names: Names, call: Call): string | undefined {
  const ids = { "iii.session.id": payload.session_id, "iii.message.id": names.message_id };
  return formatBaggage({ ...parseBaggage(call.baggage), ...ids });
}

function buildRun(payload: RunStartPayload, names: Names, call: Call, deps: Deps, transcript: "tree" | "own"): QueuedRun {
  const now = deps.clock.now();
  const { session_id, provider, model, thinking_level, max_output_tokens } = payload;
  const { turn_id, message_id } = names;
  const baggage = baggageOf(payload, names, call);
  const record: TurnRecord = {
    version: RECORD_VERSION,
    session_id,
    turn_id,
    message_id,
    state: "provisioning",
    turn_count: 0,
    max_turns: payload.max_turns ?? deps.config.max_turns,
    attempt: 0,
    last_assistant: null,
    turn_end_emitted: false,
    calls: [],
    pending: NOTHING_PENDING,
    ending: null,
    abort: null,
    event_seq: 0,
    step_failures: 0,
    usage: {},
    transcript,
    ...(call.traceparent === undefined ? {} : { traceparent: call.traceparent }),
    ...(baggage === undefined ? {} : { baggage }),
    started_at_ms: now,
    updated_at_ms: now,
  };
  const request = {
    turn_id,
    provider,
    model,
    mode: payload.mode ?? null,
    system_prompt: systemPrompt(payload),
    ...(thinking_level === undefined ? {} : { thinking_level }),
    ...(max_output_tokens === undefined ? {} : { max_output_tokens }),
  };
  const entries = payload.messages.map((message, index) => ({ entry_id: `e_${turn_id}_u${index}`, message }));
  return { record, request, entries };
}

/** What a try is decided on. The line is read before the record: whoever ends a turn rewrites the line. */
function readPlace(session_id: string, { store }: Deps) {
  return Promise.all([store.pointer(session_id), store.record(session_id), store.index(session_id)]);
}

interface Asked {
  readonly payload: RunStartPayload;
  readonly names: Names;
  readonly call: Call;
  /** What was served when the run was asked for. */
  readonly served: ReadonlySet<string>;
}

/** Entries that the session's last turn left, and that go before those of the next: as rows already, or still to become rows. */
async function leftBehind(session_id: string, place: Place, deps: Deps) {
  const { read } = place[1];
  if (read === undefined) return { rows: NOTHING_PENDING, carried: [] as readonly TranscriptEntry[] };
  return { rows: read.fault === undefined ? read.record.pending : await deps.store.pendingRows(session_id), carried: read.carried };
}

type Place = Awaited<ReturnType<typeof readPlace>>;

/** Puts the run behind the one that runs. One whose record cannot be read is woken, so that it ends and this one starts. */
function joinLine(parts: Parts, run: QueuedRun, [pointer, { read }]: Place): void {
  const { session_id } = run.record;
  const { head, tail } = pointer.value ?? EMPTY_POINTER;
  parts.writes.push({ scope: SESSION_SCOPE, key: keys.queued(session_id, tail), value: run });
  parts.writes.push({ scope: SESSION_SCOPE, key: keys.pointer(session_id), value: { head, tail: tail + 1 } });
  if (read?.fault !== undefined) parts.enqueue.push(stepMessage(read.record, false));
}

/** One try: decides and commits. Undefined: something has changed since `place` was read. */
async function tryAccept(asked: Asked, place: Place, deps: Deps): Promise<RunStartResult | undefined> {
  const { payload, names, call, served } = asked;
  const { session_id } = payload;
  const [pointer, { rev, read }, index] = place;
  const busy = read !== undefined && !isTerminal(read.record);
  if (busy && payload.if_busy === "reject") return { session_id, started: false, reason: "session_busy" };
  const transcript = index.value?.transcript ?? read?.record.transcript ?? (await chooseTranscript(served, deps));
  const run = buildRun(payload, names, call, deps, transcript);
  const { turn_id, message_id } = names;
  const answer: RunStartResult = { session_id, turn_id, message_id, started: !busy, ...(busy ? { queued: true } : {}) };
  const parts = emptyParts();
  parts.checks.push({ scope: SESSION_SCOPE, key: keys.pointer(session_id), rev: pointer.rev });
  writeReceipts(parts, session_id, names, answer);
  if (busy) joinLine(parts, run, place);
  else {
    parts.checks.push({ scope: SESSION_SCOPE, key: keys.record(session_id), rev });
    const { rows, carried } = await leftBehind(session_id, place, deps);
    beginRun(parts, { ...run, entries: [...carried, ...run.entries] }, rows);
    if (index.rev === 0) writeIndex(parts, session_id, transcript, deps.clock.now());
  }
  await deps.point("run.accept.before_commit");
  const done = await deps.store.transact(parts);
  await deps.point("run.accept.after_commit_before_reply");
  return done.ok ? answer : undefined;
}

function writeReceipts(parts: Parts, session_id: string, names: Names, answer: RunStartResult): void {
  for (const id of names.receipts) {
    const at = { scope: SESSION_SCOPE, key: keys.message(session_id, id) };
    parts.checks.push({ ...at, rev: 0 });
    parts.writes.push({ ...at, value: { fingerprint: names.fingerprint, answer } });
  }
}

/** Written once per session: its creation is what tells of a new session. */
function writeIndex(parts: Parts, session_id: string, transcript: "tree" | "own", created_at: number): void {
  const at = { scope: INDEX_SCOPE, key: session_id };
  parts.checks.push({ ...at, rev: 0 });
  parts.writes.push({ ...at, value: { session_id, created_at, transcript } });
}

/** The run with its texts made well-formed. @throws BusError `payload_too_deep`, `payload_too_large`: messages that could not be stored. */
function storableRun(given: RunStartPayload): RunStartPayload {
  const fault = unstorable(given.messages, MESSAGES_BYTES);
  if (fault !== undefined) throw new BusError(fault.code, `run::start: 'messages' cannot be stored: ${fault.message}`);
  return { ...given, messages: wellFormed(given.messages), system_prompt: given.system_prompt.toWellFormed() };
}

/**
 * Accepts a run and answers at once; the turn is driven by its queue messages. Runs of one session are accepted in the order in which
 * they arrive, whatever each of them waits for.
 * @throws BusError `payload_too_deep`, `payload_too_large`, `provider_unknown`, `model_unknown`, `idempotency_conflict`, or
 * `session_busy` when another process kept changing the session.
 */
export async function startRun(given: RunStartPayload, call: Call, deps: Deps, line: InLine, uuid: () => string): Promise<RunStartResult> {
  const payload = storableRun(given);
  const names = nameRun(payload, uuid);
  const { session_id, provider, model } = payload;
  const now = servedNow(deps.iii, [providerStream(provider).id, appendEntry.id]);
  const checks = Promise.all([now, now.then((served) => checkProvider(provider, served, deps)), checkModel(provider, model, deps)]);
  checks.catch(() => undefined); // looked at below
  return await line.behind(session_id, async () => {
    // Everything is asked for at once. An answer that was given before stands, whatever is connected now.
    let place = readPlace(session_id, deps);
    place.catch(() => undefined); // looked at below
    const known = await earlier(payload, names, deps);
    if (known !== undefined) return known;
    const asked = { payload, names, call, served: (await checks)[0] };
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const answer = await tryAccept(asked, await place, deps);
      if (answer !== undefined) return answer;
      place = readPlace(session_id, deps);
      place.catch(() => undefined);
      const meanwhile = await earlier(payload, names, deps);
      if (meanwhile !== undefined) return meanwhile;
    }
    throw new BusError("session_busy", `session ${session_id} changed ${MAX_TRIES} times while the run was being accepted; send it again`);
  });
}
