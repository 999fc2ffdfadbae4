import type { AgentEvent, AgentMessage, AssistantMessage, TurnState, TurnStateView } from "@iii/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyPush, EMPTY, fromSnapshot, type Push, post, unpost, type View } from "../ui/src/model/transcript.ts";

const user: AgentMessage = { role: "user", content: [{ type: "text", text: "list the files" }], timestamp: 100 };
const asking: AssistantMessage = {
  role: "assistant",
  content: [
    { type: "text", text: "Looking." },
    { type: "function_call", id: "c1", function_id: "agent_trigger", arguments: { function: "shell::fs::ls", payload: { path: "." } } },
  ],
  stop_reason: "function_call",
  model: "demo",
  provider: "p",
  timestamp: 110,
};
const answer: AssistantMessage = { ...asking, content: [{ type: "text", text: "Two files." }], stop_reason: "end", timestamp: 130 };
const result = { content: [{ type: "text" as const, text: "a b" }], details: {} };

function turn(state: TurnState, at: number, more: Partial<TurnStateView> = {}): TurnStateView {
  return {
    session_id: "s",
    turn_id: "t1",
    message_id: "x",
    state,
    turn_count: 1,
    max_turns: 50,
    started_at_ms: 100,
    updated_at_ms: at,
    ...more,
  };
}
const moved = (view: TurnStateView, event_type: "state:created" | "state:updated" = "state:updated"): AgentEvent => ({
  type: "turn_state_changed",
  event_type,
  new_value: view,
});
const hold = {
  function_call_id: "c1",
  function_id: "shell::fs::ls",
  args: { path: "." },
  args_sha256: "0",
  requested_at: 110,
  expires_at: null,
  remaining_ms: null,
};

/** One whole turn: streamed, parked, allowed, answered. */
const WHOLE: readonly AgentEvent[] = [
  moved(turn("provisioning", 101), "state:created"),
  moved(turn("assistant_streaming", 102)),
  { type: "message_update", message_id: "m1", attempt: 1, block: 0, offset: 0, llm_event: { type: "text_delta", delta: "Look" } },
  { type: "message_update", message_id: "m1", attempt: 1, block: 0, offset: 4, llm_event: { type: "text_delta", delta: "ing." } },
  { type: "message_complete", message_id: "m1", message: asking },
  moved(turn("function_awaiting_approval", 111, { awaiting_approval: [hold] })),
  { type: "function_execution_start", function_call_id: "c1", function_id: "shell::fs::ls", args: { path: "." }, awaiting_approval: true },
  moved(turn("function_execute", 120)),
  { type: "function_execution_end", function_call_id: "c1", function_id: "shell::fs::ls", result, is_error: false, duration_ms: 5 },
  { type: "turn_end", message: asking, function_results: [] },
  moved(turn("assistant_streaming", 125)),
  { type: "message_update", message_id: "m2", attempt: 1, block: 0, offset: 0, llm_event: { type: "text_delta", delta: "Two" } },
  { type: "message_complete", message_id: "m2", message: answer },
  { type: "turn_end", message: answer, function_results: [] },
  { type: "agent_end", turn_id: "t1", messages: [] },
  moved(turn("stopped", 131, { stop_reason: "end" })),
];
const PUSHES: readonly Push[] = WHOLE.map((event, index) => ({ event, seq: index + 1, epoch: "e" }));
const START: View = post({ ...EMPTY, cursor: { epoch: "e", seq: 0 } }, user, "accepted");
const run = (pushes: readonly Push[], from = START) => pushes.reduce(applyPush, from);
const shown = (view: View) => ({
  messages: view.entries.map((entry) => entry.message),
  live: view.live,
  calls: [...view.calls],
  turn: view.turn,
});

describe("events", () => {
  test("a whole turn ends with both answers, the call done and nothing streaming", () => {
    const view = run(PUSHES);
    expect(view.entries.map((entry) => entry.message)).toEqual([user, asking, answer]);
    expect(view.calls.get("c1")).toMatchObject({ status: "done", text: "a b", duration_ms: 5 });
    expect(view).toMatchObject({ live: [], stale: false, turn: { state: "stopped" } });
  });

  test("text is there while it streams, and is replaced by the finished message", () => {
    expect(run(PUSHES.slice(0, 4)).live[0]?.blocks).toEqual([{ type: "text", text: "Looking." }]);
    expect(run(PUSHES.slice(0, 5))).toMatchObject({ live: [], entries: [{ message: user }, { message: asking }] });
  });

  test("a parked call is shown as awaiting, and as waiting again once its turn goes on", () => {
    expect(run(PUSHES.slice(0, 6)).calls.get("c1")).toMatchObject({ status: "awaiting", function_id: "shell::fs::ls" });
    expect(run(PUSHES.slice(0, 8)).calls.get("c1")?.status).toBe("waiting");
  });

  test("a delta that comes after its finished message is ignored", () => {
    const late: Push = { event: WHOLE[2] as AgentEvent, seq: 99, epoch: "e" };
    expect(run([...PUSHES.slice(0, 5), late]).live).toEqual([]);
  });

  test("an event of another epoch asks for a new snapshot and changes nothing else", () => {
    const before = run(PUSHES.slice(0, 3));
    const after = applyPush(before, { event: WHOLE[4] as AgentEvent, seq: 50, epoch: "other" });
    expect(after).toEqual({ ...before, stale: true });
  });

  test("a hole in a streaming text asks for a new snapshot", () => {
    const hole: AgentEvent = {
      type: "message_update",
      message_id: "m1",
      attempt: 1,
      block: 0,
      offset: 40,
      llm_event: { type: "text_delta", delta: "x" },
    };
    expect(run([...PUSHES.slice(0, 3), { event: hole, seq: 9, epoch: "e" }]).stale).toBe(true);
  });

  test("delivering any event again, at any later time, changes nothing", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(PUSHES.length - 1), fc.nat(PUSHES.length - 1)), { maxLength: 10 }), (repeats) => {
        const noisy = PUSHES.flatMap((push, at) => [
          push,
          ...repeats.filter(([after, which]) => after === at && which <= at).map(([, which]) => PUSHES[which] as Push),
        ]);
        expect(shown(run(noisy))).toEqual(shown(run(PUSHES)));
      }),
    );
  });
});

describe("snapshots", () => {
  const result_message: AgentMessage = {
    role: "function_result",
    function_call_id: "c1",
    function_id: "shell::fs::ls",
    content: result.content,
    details: {},
    is_error: false,
    timestamp: 121,
  };
  const TREE: readonly AgentMessage[] = [user, asking, result_message, answer];
  /** What the transcript holds once `n` events have happened. */
  const treeAt = (n: number) => TREE.slice(0, n < 5 ? 1 : n < 9 ? 2 : n < 13 ? 3 : 4).map((message) => ({ message }));
  const turnAt = (n: number) => {
    const event = WHOLE.slice(0, n).findLast((one) => one.type === "turn_state_changed");
    return event?.type === "turn_state_changed" ? event.new_value : null;
  };

  test("a reload at any moment of a turn, followed by the rest of its events, ends as if nothing had happened", () => {
    for (let at = 0; at <= WHOLE.length; at += 1) {
      for (let late = at; late <= Math.min(WHOLE.length, at + 3); late += 1) {
        // Subscribed after `at` events; the snapshot was read a little later.
        const loaded = fromSnapshot(EMPTY, { messages: treeAt(late), turn: turnAt(late) }, { epoch: "e", seq: at }, WHOLE.slice(0, at));
        const view = run(PUSHES.slice(at), loaded);
        expect(view.entries.filter((entry) => entry.message.role !== "function_result").map((entry) => entry.message)).toEqual([
          user,
          asking,
          answer,
        ]);
        expect(view.calls.get("c1")).toMatchObject({ status: "done", text: "a b" });
        expect(view).toMatchObject({ live: [], turn: { state: "stopped" } });
      }
    }
  });

  test("a reload in mid-stream shows the text that has streamed so far", () => {
    const view = fromSnapshot(EMPTY, { messages: treeAt(4), turn: turnAt(4) }, { epoch: "e", seq: 4 }, WHOLE.slice(0, 4));
    expect(view.live[0]?.blocks).toEqual([{ type: "text", text: "Looking." }]);
  });

  test("a message that is finished but not in the transcript yet comes from the events", () => {
    const view = fromSnapshot(EMPTY, { messages: [{ message: user }], turn: turnAt(5) }, { epoch: "e", seq: 5 }, WHOLE.slice(0, 5));
    expect(view.entries.map((entry) => entry.message)).toEqual([user, asking]);
  });

  test("events of earlier turns do not come back", () => {
    const older: AgentEvent = { type: "message_complete", message_id: "m0", message: { ...answer, timestamp: 1 } };
    const view = fromSnapshot(EMPTY, { messages: treeAt(16), turn: turnAt(16) }, { epoch: "e", seq: 20 }, [older, ...WHOLE]);
    expect(view.entries.map((entry) => entry.message)).toEqual(TREE);
  });

  test("a parked call is awaiting right after a load, and its duration survives a later load", () => {
    const parked = fromSnapshot(EMPTY, { messages: treeAt(6), turn: turnAt(6) }, { epoch: "e", seq: 6 }, []);
    expect(parked.calls.get("c1")?.status).toBe("awaiting");
    const again = fromSnapshot(run(PUSHES), { messages: treeAt(16), turn: turnAt(16) }, { epoch: "e", seq: 16 }, []);
    expect(again.calls.get("c1")).toMatchObject({ status: "done", duration_ms: 5 });
  });

  test("a call that an ended turn left without a result is not shown as running", () => {
    const view = fromSnapshot(EMPTY, { messages: treeAt(6), turn: turn("failed", 140) }, { epoch: "e", seq: 6 }, []);
    expect(view.calls.get("c1")?.status).toBe("lost");
  });
});

describe("posting", () => {
  test("a posted message is shown once, before and after the transcript has it", () => {
    const view = post(post(EMPTY, user, "sending"), user, "accepted");
    expect(view.entries).toMatchObject([{ posted: "accepted" }]);
    const loaded = fromSnapshot(view, { messages: [{ message: user }], turn: null }, { epoch: "e", seq: 0 }, []);
    expect(loaded.entries).toEqual([{ key: "user:100", message: user }]);
  });

  test("a refused message is taken back", () => {
    expect(unpost(post(EMPTY, user, "sending"), user).entries).toEqual([]);
  });

  test("a queued message stays behind what the running turn still says", () => {
    const queued: AgentMessage = { ...user, timestamp: 115 };
    const view = run(PUSHES.slice(5), post(run(PUSHES.slice(0, 5)), queued, "queued"));
    expect(view.entries.map((entry) => entry.message)).toEqual([user, asking, answer, queued]);
  });
});
