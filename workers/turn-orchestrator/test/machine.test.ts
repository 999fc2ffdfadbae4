// The machine alone: every history of outcomes, in any order and any number of times, keeps the turn's promises.
import type { AssistantMessage } from "@iii/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Out } from "../src/machine/draft.ts";
import { due, type Effect, effectKey, needsJournal, type TurnEvent } from "../src/machine/events.ts";
import { planCalls } from "../src/machine/plan.ts";
import { DEFAULT_POLICY, isTerminal, type TurnCall, TurnRecord } from "../src/machine/record.ts";
import { textResult } from "../src/machine/results.ts";
import { step } from "../src/machine/step.ts";

const fresh: TurnRecord = {
  version: 2,
  session_id: "s",
  turn_id: "t_1",
  message_id: "m",
  state: "provisioning",
  turn_count: 0,
  max_turns: 4,
  attempt: 0,
  last_assistant: null,
  turn_end_emitted: false,
  calls: [],
  pending: { first: 1, next: 2, bytes: 80 },
  ending: null,
  abort: null,
  event_seq: 1,
  step_failures: 0,
  usage: {},
  transcript: "own",
  started_at_ms: 1,
  updated_at_ms: 1,
};

function says(ids: readonly string[], stop?: AssistantMessage["stop_reason"]): AssistantMessage {
  const content = ids.map((id) => ({
    type: "function_call" as const,
    id,
    function_id: "agent_trigger",
    arguments: { function: "f", payload: {} },
  }));
  const stop_reason = stop ?? (ids.length > 0 ? "function_call" : "end");
  return { role: "assistant", content, stop_reason, model: "m", provider: "p", timestamp: 1 };
}

function generated(record: TurnRecord, ids: readonly string[], stop?: AssistantMessage["stop_reason"]): TurnEvent {
  const message = says(ids, stop);
  const calls = message.stop_reason === "error" || message.stop_reason === "aborted" ? [] : planCalls(message);
  return { type: "generated", answers: effectKey.generate(record), now: 2, message, calls, streamed: false, vanished: false };
}

/** One way in which an effect may end, chosen by `dice`. */
function outcome(effect: Effect, record: TurnRecord, dice: number): TurnEvent {
  const { key: answers } = effect;
  const policies = [
    DEFAULT_POLICY,
    { ...DEFAULT_POLICY, effect: "idempotent" as const, parallel: true },
    { ...DEFAULT_POLICY, probe: "probe" },
  ];
  const policy = policies[dice % policies.length] ?? DEFAULT_POLICY;
  const settled = { result: textResult("r"), is_error: false };
  switch (effect.type) {
    case "generate": {
      const stops = [undefined, undefined, undefined, "length", "error", "aborted"] as const;
      const ids = Array.from({ length: dice % 4 }, (_, index) => `c_${record.turn_count}_${index}`);
      return generated(record, ids, stops[dice % stops.length]);
    }
    case "judge": {
      const verdicts = [
        { type: "allow" as const, policy },
        { type: "park" as const, policy, args_sha256: "h", expires_in_ms: null },
        { type: "refuse" as const, settled },
      ];
      return { type: "judged", answers, now: 2, verdict: verdicts[dice % 3] ?? { type: "refuse", settled } };
    }
    case "recheck":
      return { type: "rechecked", answers, now: 2, refused: dice % 3 === 0 ? settled : null };
    case "invoke":
      return {
        type: "returned",
        answers,
        now: 2,
        outcome: dice % 4 === 0 ? { type: "lost" } : { type: "result", settled, duration_ms: 1 },
      };
    case "probe":
      return { type: "probed", answers, now: 2, answer: dice % 3 === 0 ? "not_run" : dice % 3 === 1 ? "unknown" : settled };
    case "append":
      return { type: "appended", now: 2, next: effect.next, bytes: record.pending.bytes, lost: [] };
  }
}

function decision(record: TurnRecord, dice: number): TurnEvent | undefined {
  const parked = record.calls.filter((call) => call.phase === "parked");
  const call = parked[dice % Math.max(1, parked.length)];
  if (call === undefined) return undefined;
  const choice = (["allow", "deny", "aborted"] as const)[dice % 3] ?? "deny";
  const human = { decision: choice, reason: null, by: "anna", decided_at: 2 };
  return { type: "decided", now: 2, call_id: call.id, decision: dice % 5 === 4 ? "expired" : human };
}

interface History {
  record: TurnRecord;
  outs: Out[];
  events: TurnEvent[];
  /** Every entry that was sent to the transcript. */
  entries: string[];
}

/** Plays dice until the turn has ended. Stale and doubled events are mixed in by `noise`. */
function play(dice: readonly number[], noise: (history: History, n: number) => TurnEvent[]): History {
  const history: History = { record: fresh, outs: [], events: [], entries: [] };
  const feed = (event: TurnEvent): void => {
    const before = history.record;
    const next = step(before, event);
    history.entries.push(...next.outs.flatMap((out) => (out.type === "entry" ? [out.entry.entry_id] : [])));
    history.record = next.record;
    history.outs.push(...next.outs);
    history.events.push(event);
  };
  feed({ type: "woken", now: 2 });
  for (let n = 0; n < 400 && !isTerminal(history.record); n += 1) {
    const roll = dice[n % dice.length] ?? 0;
    for (const event of noise(history, roll)) feed(event);
    const effects = due(history.record);
    const effect = effects[roll % Math.max(1, effects.length)];
    const event = effect === undefined ? decision(history.record, roll) : outcome(effect, history.record, roll);
    if (event !== undefined) feed(event);
  }
  return history;
}

const rolls = fc.array(fc.nat(1_000), { minLength: 5, maxLength: 60 });

function keepsPromises({ record, outs, entries }: History): void {
  expect(isTerminal(record)).toBe(true);
  expect(TurnRecord.safeParse(record).success).toBe(true);
  const events = outs.flatMap((out) => (out.type === "event" ? [out.event] : []));
  const seqs = outs.flatMap((out) => (out.type === "event" ? [out.seq] : []));
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  expect(events.filter((event) => event.type === "agent_end")).toHaveLength(1);
  const starts = events.flatMap((event) => (event.type === "function_execution_start" ? [event.function_call_id] : []));
  const ends = events.flatMap((event) => (event.type === "function_execution_end" ? [event.function_call_id] : []));
  expect(new Set(ends).size).toBe(ends.length);
  expect(starts.toSorted()).toEqual(ends.toSorted());
  const results = events.flatMap((event) =>
    event.type === "turn_end" ? event.function_results.map((result) => result.function_call_id) : [],
  );
  expect(results.toSorted()).toEqual(ends.toSorted());
  expect(new Set(entries).size).toBe(entries.length);
  const parks = outs.flatMap((out) => (out.type === "park" ? [out.call.id] : []));
  const unparks = outs.flatMap((out) => (out.type === "unpark" ? [out.call_id] : []));
  expect(unparks.toSorted()).toEqual(parks.toSorted());
  const rows = outs.flatMap((out) => (out.type === "entry" ? [out.n] : []));
  expect(rows).toEqual(rows.map((_, index) => index + 2));
  const dropped = outs.flatMap((out) => (out.type === "dropped" ? [out] : []));
  expect(dropped.at(-1)?.next).toBe(record.pending.next);
  expect(dropped.slice(1).map((out) => out.first)).toEqual(dropped.slice(0, -1).map((out) => out.next));
}

describe("any history", () => {
  test("ends, with one result per call and one end", () => {
    fc.assert(
      fc.property(rolls, (dice) => keepsPromises(play(dice, () => []))),
      { numRuns: 500 },
    );
  });

  test("A10 is not changed by events that come again or from before", () => {
    const property = fc.property(rolls, rolls, (dice, echoes) => {
      const calm = play(dice, () => []);
      let n = 0;
      const noisy = play(dice, (history) => {
        n += 1;
        const pick = echoes[n % echoes.length] ?? 0;
        const old = history.events.filter((event) => event.type !== "woken" && event.type !== "aborted");
        return pick % 2 === 0 ? [] : [old[pick % Math.max(1, old.length)], old.at(-1)].filter((event) => event !== undefined);
      });
      expect(noisy.record).toEqual(calm.record);
      expect(noisy.outs).toEqual(calm.outs);
    });
    fc.assert(property, { numRuns: 300 });
  });

  test("keeps its promises when the process dies and comes back anywhere", () => {
    const property = fc.property(rolls, (dice) =>
      keepsPromises(play(dice, (_, roll) => (roll % 7 === 3 ? [{ type: "woken", now: 2 }] : []))),
    );
    fc.assert(property, { numRuns: 500 });
  });

  test("keeps its promises when it is aborted anywhere, and starts no call after that", () => {
    const property = fc.property(rolls, fc.nat(20), (dice, when) => {
      let n = 0;
      let running: string[] | undefined;
      const history = play(dice, ({ record }) => {
        n += 1;
        const started = record.calls.flatMap((call) => (call.phase === "started" ? [call.id] : []));
        expect(running === undefined || started.every((id) => running?.includes(id))).toBe(true);
        if (n !== when + 1) return [];
        running = started;
        return [{ type: "aborted", now: 2, reason: "stop" }];
      });
      keepsPromises(history);
    });
    fc.assert(property, { numRuns: 500 });
  });

  test("a step that breaks ends the turn as failed, with every call answered", () => {
    const property = fc.property(rolls, fc.nat(15), (dice, when) => {
      let n = 0;
      const history = play(dice, () => {
        n += 1;
        return n === when + 1 ? [{ type: "broken", now: 2, kind: "store_corrupt", message: "x", give_up: false }] : [];
      });
      keepsPromises(history);
      if (n > when) expect(history.record.state).toBe("failed");
    });
    fc.assert(property, { numRuns: 300 });
  });
});

test("K3.6 in any history a call goes one way through its phases, and back only to be tried anew", () => {
  const later: Record<TurnCall["phase"], readonly TurnCall["phase"][]> = {
    planned: ["ready", "parked", "done"],
    parked: ["released", "done"],
    released: ["ready", "done"],
    ready: ["started", "done"],
    started: ["started", "probing", "done"],
    probing: ["started", "probing", "done"],
    done: [],
  };
  const property = fc.property(rolls, (dice) => {
    let before: readonly TurnCall[] = [];
    play(dice, ({ record }) => {
      for (const call of record.calls) {
        const was = before.find((other) => other.id === call.id)?.phase;
        // Several steps may lie between two looks.
        if (was !== undefined && was !== call.phase) expect(reaches(was, call.phase)).toBe(true);
      }
      before = record.calls;
      return [];
    });
  });
  const reaches = (from: TurnCall["phase"], to: TurnCall["phase"], seen = new Set<string>()): boolean =>
    later[from].some((next) => next === to || (!seen.has(next) && reaches(next, to, new Set([...seen, next]))));
  fc.assert(property, { numRuns: 300 });
});

test("W1 what changes something outside leaves only when it is journalled", () => {
  const kinds = { generate: true, invoke: true, append: true, judge: false, recheck: false, probe: false } as const;
  for (const [type, expected] of Object.entries(kinds)) {
    const call: TurnCall = { id: "c", function_id: "f", args: {}, phase: "planned" };
    const effect = { type, key: "append", call, entries: [] } as Effect;
    expect(needsJournal(effect), type).toBe(expected);
  }
});

test("a model call is counted once, however often it is attempted", () => {
  let record = step(fresh, { type: "woken", now: 2 }).record;
  for (let attempt = 2; attempt < 6; attempt += 1) {
    record = step(record, { type: "woken", now: 2 }).record;
    expect(record).toMatchObject({ turn_count: 1, attempt });
  }
});

test("case 46: an answer cut at its length limit runs none of its calls, and each gets a result", () => {
  const streaming = step(fresh, { type: "woken", now: 2 }).record;
  const { record, outs } = step(streaming, generated(streaming, ["a", "b"], "length"));
  expect(due(record).some((effect) => effect.type === "invoke" || effect.type === "judge")).toBe(false);
  expect(record.ending).toMatchObject({ stop_reason: "length" });
  expect(outs.filter((out) => out.type === "event" && out.event.type === "function_execution_end")).toHaveLength(2);
});

test("calls that do not allow company run one at a time, others together up to eight", () => {
  const ids = Array.from({ length: 12 }, (_, index) => `c${index}`);
  const run = (parallel: boolean): number => {
    const streaming = step(fresh, { type: "woken", now: 2 }).record;
    let { record } = step(streaming, generated(streaming, ids));
    for (const effect of due(record)) {
      const verdict = { type: "allow" as const, policy: { ...DEFAULT_POLICY, parallel } };
      record = step(record, { type: "judged", answers: effect.key, now: 2, verdict }).record;
    }
    return due(record).filter((effect) => effect.type === "invoke").length;
  };
  expect(run(false)).toBe(1);
  expect(run(true)).toBe(8);
});
