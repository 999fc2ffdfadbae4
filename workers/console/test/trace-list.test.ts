import type { AgentMessage } from "@iii/contracts";
import { expect, test } from "vitest";
import { type ListedSpan, traceRows, traceTitle } from "../ui/src/model/trace-list.ts";

const span = (trace_id: string, name: string, start_ms: number, message?: string): ListedSpan => ({
  trace_id,
  name,
  start_time_unix_nano: start_ms * 1e6,
  ...(message === undefined ? {} : { trace_tags: { "iii.session.id": "s", "iii.message.id": message } }),
});
const said = (text: string, timestamp: number): AgentMessage => ({ role: "user", content: [{ type: "text", text }], timestamp });

test("U47 a session lists its turns, newest first, and never the look-ups of a page", () => {
  const rows = traceRows([
    span("look", "execute session-tree::messages", 5),
    span("a", "call turn::step", 30),
    span("a", "execute harness::trigger", 10),
    span("b", "execute custom::starter", 40, "m2"),
  ]);
  expect(rows).toEqual([
    { trace_id: "b", name: "execute custom::starter", start_ms: 40 },
    { trace_id: "a", name: "execute harness::trigger", start_ms: 10 },
  ]);
  expect(traceRows([span("look", "execute session-tree::messages", 5)])).toEqual([]);
});

test("U47 each trace is named by its own message, also when many were posted within a second", () => {
  const messages = [said("one", 1_000), said("two", 1_300), said("three", 1_500), said("four", 9_000)];
  const title = (start_ms: number) => traceTitle({ trace_id: "t", name: "n", start_ms }, messages);
  expect([1_004, 1_303, 1_510, 9_002].map(title)).toEqual(["one", "two", "three", "four"]);
  expect(traceTitle({ trace_id: "t", name: "n", start_ms: 1 }, [])).toBe("n");
});
