// One session as the page shows it: a snapshot, then events. Every event may arrive twice or late; the cursor and the message keys
// keep the view the same. Pure: no DOM, no clock.
import type { AgentEvent, AgentMessage, TurnStateView } from "@iii/contracts";
import { type CallState, callsOf, finished, isOver, withAwaiting } from "./calls.ts";
import { applyUpdate, type LiveMessage } from "./live-message.ts";

export interface Entry {
  /** The same for one message, whether it came by snapshot, by event or from the composer. */
  readonly key: string;
  readonly message: AgentMessage;
  /** Set while a posted message is not in the transcript yet. */
  readonly posted?: "sending" | "accepted" | "queued";
}

export interface Cursor {
  readonly epoch: string | undefined;
  readonly seq: number;
}

export interface View {
  readonly entries: readonly Entry[];
  readonly live: readonly LiveMessage[];
  /** Messages that are complete: late deltas of theirs are ignored. */
  readonly settled: ReadonlySet<string>;
  readonly calls: ReadonlyMap<string, CallState>;
  /** Calls that stand in a finished message; their results are shown there. */
  readonly asked: ReadonlySet<string>;
  readonly turn: TurnStateView | null;
  readonly cursor: Cursor;
  /** The events no longer add up: the snapshot must be read again. */
  readonly stale: boolean;
}

export interface Snapshot {
  /** Undefined: nobody keeps transcripts, so events are all there is. */
  readonly messages: readonly { readonly message: AgentMessage }[] | undefined;
  readonly turn: TurnStateView | null;
}

export interface Push {
  readonly event: AgentEvent;
  readonly seq?: number | undefined;
  readonly epoch?: string | undefined;
}

export const EMPTY: View = {
  entries: [],
  live: [],
  settled: new Set(),
  calls: new Map(),
  asked: new Set(),
  turn: null,
  cursor: { epoch: undefined, seq: 0 },
  stale: false,
};

/** Identifies a message by what every copy of it has. */
export function keyOf(message: AgentMessage): string {
  if (message.role === "function_result") return `function_result:${message.function_call_id}:${message.timestamp}`;
  if (message.role !== "assistant") return `${message.role}:${message.timestamp}`;
  const call = message.content.find((block) => block.type === "function_call");
  return `assistant:${message.timestamp}:${call?.type === "function_call" ? call.id : message.content.length}`;
}

/**
 * A view from a snapshot that was read after the events up to `cursor` had been asked for. `missed` are those events: the ones of
 * the last turn rebuild what streams right now. Messages of the old view that the snapshot lacks are kept at the end.
 */
export function fromSnapshot(old: View, snapshot: Snapshot, cursor: Cursor, missed: readonly AgentEvent[]): View {
  if (snapshot.messages === undefined) {
    const base = { ...old, live: [], turn: snapshot.turn, cursor, stale: false, calls: withAwaiting(old.calls, snapshot.turn) };
    return missed.reduce(applyEvent, base);
  }
  const entries = snapshot.messages.map(({ message }) => ({ key: keyOf(message), message }));
  const known = new Set(entries.map((entry) => entry.key));
  const kept = old.entries.filter((entry) => !known.has(entry.key));
  const calls = callsOf(
    entries.map((entry) => entry.message),
    snapshot.turn,
  );
  const shown = [...entries, ...kept];
  const base: View = {
    entries: shown,
    live: [],
    settled: old.settled,
    calls: withDurations(calls, old.calls),
    asked: new Set(shown.flatMap((entry) => askedBy(entry.message))),
    turn: snapshot.turn,
    cursor,
    stale: false,
  };
  return lastTurn(missed).reduce(applyEvent, base);
}

/** Applies one pushed event: nothing happens when it was seen before, and another epoch asks for a new snapshot. */
export function applyPush(view: View, push: Push): View {
  const { epoch, seq } = view.cursor;
  if (epoch !== undefined && push.epoch !== undefined && push.epoch !== epoch) return { ...view, stale: true };
  if (push.seq !== undefined && push.seq <= seq) return view;
  const next = applyEvent(view, push.event);
  return { ...next, cursor: { epoch: push.epoch ?? epoch, seq: push.seq ?? seq } };
}

/** Shows a message that was just posted, until the transcript has it. */
export function post(view: View, message: AgentMessage, posted: Entry["posted"]): View {
  const key = keyOf(message);
  const entry: Entry = posted === undefined ? { key, message } : { key, message, posted };
  const known = view.entries.some((other) => other.key === key);
  return { ...view, entries: known ? view.entries.map((other) => (other.key === key ? entry : other)) : [...view.entries, entry] };
}

/** Takes a posted message back: it was not accepted. */
export function unpost(view: View, message: AgentMessage): View {
  const key = keyOf(message);
  return { ...view, entries: view.entries.filter((entry) => entry.key !== key || entry.posted === undefined) };
}

function applyEvent(view: View, event: AgentEvent): View {
  switch (event.type) {
    case "message_update": {
      if (view.settled.has(event.message_id)) return view;
      const live = applyUpdate(
        view.live.find((message) => message.message_id === event.message_id),
        event,
      );
      const others = view.live.filter((message) => message.message_id !== event.message_id);
      return { ...view, live: [...others, live], stale: view.stale || live.hole };
    }
    case "message_complete":
      return complete(view, event.message_id, event.message);
    case "function_execution_start": {
      const { function_id, args } = event;
      if (view.calls.get(event.function_call_id)?.text !== undefined) return view;
      return withCall(view, event.function_call_id, {
        status: event.awaiting_approval === true ? "awaiting" : "running",
        function_id,
        args,
      });
    }
    case "function_execution_end": {
      const known = view.calls.get(event.function_call_id);
      return withCall(view, event.function_call_id, { ...known, ...finished(event.result, event.is_error, event.duration_ms) });
    }
    case "turn_state_changed":
      return turnChanged(view, event.new_value);
    case "turn_end":
      return event.function_results.reduce(
        (next, result) =>
          next.calls.get(result.function_call_id)?.text === undefined
            ? withCall(next, result.function_call_id, { ...next.calls.get(result.function_call_id), ...finished(result, result.is_error) })
            : next,
        view,
      );
    case "agent_end":
      return { ...view, live: [] };
  }
}

function complete(view: View, messageId: string, message: AgentMessage): View {
  const key = keyOf(message);
  const settled = new Set(view.settled).add(messageId);
  const live = view.live.filter((other) => other.message_id !== messageId);
  if (message.role === "function_result" || view.entries.some((entry) => entry.key === key)) return { ...view, settled, live };
  const asked = askedBy(message);
  const calls = new Map(view.calls);
  for (const id of asked) if (!calls.has(id)) calls.set(id, { status: "waiting" });
  const entries = insert(view.entries, { key, message });
  return { ...view, settled, live, calls, asked: new Set([...view.asked, ...asked]), entries };
}

/** The ids of the calls that a message asks for. */
function askedBy(message: AgentMessage): string[] {
  if (message.role !== "assistant") return [];
  return message.content.flatMap((block) => (block.type === "function_call" ? [block.id] : []));
}

/** A finished message stands before messages that were posted but have not started yet. */
function insert(entries: readonly Entry[], entry: Entry): readonly Entry[] {
  const queued = entries.findIndex((other) => other.posted === "queued");
  return queued === -1 ? [...entries, entry] : entries.toSpliced(queued, 0, entry);
}

function turnChanged(view: View, turn: TurnStateView): View {
  const old = view.turn;
  if (old !== null && old.turn_id === turn.turn_id && (old.updated_at_ms > turn.updated_at_ms || (isOver(old) && !isOver(turn))))
    return view;
  if (old !== null && old.turn_id !== turn.turn_id && old.started_at_ms > turn.started_at_ms) return view;
  return { ...view, turn, calls: withAwaiting(view.calls, turn), live: isOver(turn) ? [] : view.live };
}

/** A transcript does not say how long a call took; the events that did are kept. */
function withDurations(calls: ReadonlyMap<string, CallState>, old: ReadonlyMap<string, CallState>): Map<string, CallState> {
  const next = new Map(calls);
  for (const [id, call] of calls) {
    const took = old.get(id)?.duration_ms;
    if (took !== undefined && call.text !== undefined) next.set(id, { ...call, duration_ms: took });
  }
  return next;
}

function withCall(view: View, id: string, call: CallState): View {
  return { ...view, calls: new Map(view.calls).set(id, call) };
}

function lastTurn(events: readonly AgentEvent[]): readonly AgentEvent[] {
  const start = events.findLastIndex((event) => event.type === "turn_state_changed" && event.event_type === "state:created");
  return start === -1 ? events : events.slice(start);
}
