import type { AgentEvent } from "@iii/contracts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { applyUpdate, type LiveMessage, type MessageUpdate } from "../ui/src/model/live-message.ts";

type Delta = Extract<AgentEvent, { type: "message_update" }>["llm_event"];

const update = (attempt: number, block: number, offset: number, llm_event: Delta): MessageUpdate => ({
  type: "message_update",
  message_id: "m_1",
  attempt,
  block,
  offset,
  llm_event,
});
const text = (delta: string): Delta => ({ type: "text_delta", delta });
const fold = (updates: readonly MessageUpdate[]) => updates.reduce<LiveMessage | undefined>(applyUpdate, undefined);

test("deltas of one block join to its text", () => {
  expect(fold([update(1, 0, 0, text("say ")), update(1, 0, 4, text("hello"))])?.blocks).toEqual([{ type: "text", text: "say hello" }]);
});

test("a delta that overlaps what is there adds only what is new", () => {
  expect(fold([update(1, 0, 0, text("hello")), update(1, 0, 3, text("lo you"))])?.blocks[0]?.text).toBe("hello you");
});

test("a delta beyond the end is a hole, not text", () => {
  const live = fold([update(1, 0, 0, text("hel")), update(1, 0, 9, text("xx"))]);
  expect(live).toMatchObject({ hole: true, blocks: [{ text: "hel" }] });
});

test("a newer attempt starts the message again; an older one is ignored", () => {
  const live = fold([update(1, 0, 0, text("old old")), update(2, 0, 0, text("new")), update(1, 0, 7, text(" more"))]);
  expect(live).toMatchObject({ attempt: 2, blocks: [{ text: "new" }] });
});

test("blocks are told apart by index, whatever order they start in", () => {
  const live = fold([
    update(1, 1, 0, { type: "functioncall_start", id: "c1", name: "agent_trigger" }),
    update(1, 0, 0, { type: "thinking_delta", delta: "hm" }),
    update(1, 1, 0, { type: "functioncall_delta", delta: '{"a":' }),
  ]);
  expect(live?.blocks).toEqual([
    { type: "thinking", text: "hm" },
    { type: "function_call", text: '{"a":', id: "c1", name: "agent_trigger" },
  ]);
});

test("deltas of a foreign provider without block or offset are joined in order", () => {
  const bare = (delta: string): MessageUpdate => ({ type: "message_update", message_id: "m_1", attempt: 1, llm_event: text(delta) });
  expect(fold([bare("a"), bare("b"), bare("c")])?.blocks).toEqual([{ type: "text", text: "abc" }]);
});

test("delivering deltas again, from any earlier one on, changes nothing", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (parts, again) => {
        let offset = 0;
        const all = parts.map((part) => {
          const one = update(1, 0, offset, text(part));
          offset += part.length;
          return one;
        });
        const replayed = again.flatMap((from) => all.slice(from % all.length));
        expect(fold([...all, ...replayed])).toEqual(fold(all));
      },
    ),
  );
});
