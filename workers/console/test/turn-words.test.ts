import type { TurnStateView } from "@iii/contracts";
import { expect, test } from "vitest";
import { denialText } from "../ui/src/model/calls.ts";
import { announcement, turnWords } from "../ui/src/model/turn-words.ts";

const turn = (state: TurnStateView["state"], stop_reason?: string): TurnStateView => ({
  session_id: "s",
  turn_id: "t",
  message_id: "m",
  state,
  turn_count: 1,
  max_turns: 9,
  started_at_ms: 1,
  updated_at_ms: 2,
  ...(stop_reason === undefined ? {} : { stop_reason }),
});

test.each([
  ["U15 a turn that ended well is done", turn("stopped", "end"), "done", "quiet"],
  ["U15 a turn whose answer failed is red and says so", turn("stopped", "error"), "failed", "bad"],
  ["U15 a turn that failed is red and says so", turn("failed"), "failed", "bad"],
  ["a stopped one is stopped", turn("stopped", "aborted"), "stopped", "quiet"],
  ["an unknown reason is shown as it is", turn("stopped", "moon"), "stopped: moon", "quiet"],
  ["a running one is busy", turn("assistant_streaming"), "model is answering", "busy"],
  ["a parked one waits", turn("function_awaiting_approval"), "waits for your decision", "warn"],
])("%s", (_title, view, text, tone) => {
  expect(turnWords(view, true)).toEqual({ text, tone });
});

test("K12.1 while nothing is known of the engine, no turn is said to run", () => {
  for (const state of ["provisioning", "assistant_streaming", "function_execute", "steering_check"] as const) {
    const words = turnWords(turn(state), false);
    expect(words.text).toMatch(/^last seen: /);
    expect(words.tone).toBe("warn");
  }
  expect(turnWords(turn("stopped", "end"), false).text).toBe("done");
});

test("U15 what is read aloud tells a failure from an end", () => {
  expect(announcement(turn("stopped", "error"))).toBe("The turn failed.");
  expect(announcement(turn("stopped", "end"))).toBe("The turn is done.");
});

test.each([
  ["Permission denied by user: deny", "You denied this."],
  ["Permission denied by user: too dangerous", "You denied this: too dangerous"],
  ["Permission denied by user", "You denied this."],
  ["", "You denied this."],
])("U24 a denial gives a reason only when there is one: %j", (reason, text) => {
  expect(denialText(reason)).toBe(text);
});
