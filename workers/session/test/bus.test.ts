// The session worker on a bus: what it keeps survives a crash of everything, and racing appends all arrive.
import { testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { appendBatch, appendEntry, createSession, ensureSession, listSessions, sessionMessages } from "../src/contract.ts";
import { worker } from "../src/register.ts";

const say = (text: string) => ({ role: "user" as const, content: [{ type: "text" as const, text }], timestamp: 1 });

test("a transcript survives a crash, and a repeated append changes nothing", async () => {
  await using bus = await testBus([worker]);
  await bus.call(ensureSession, { session_id: "s", display_name: "one" });
  await bus.call(appendEntry, { session_id: "s", entry_id: "a", message: say("hello") });
  await bus.call(appendBatch, { session_id: "s", entry_ids: ["b", "c"], messages: [say("x"), say("y")] });
  await bus.crash();
  await bus.call(appendBatch, { session_id: "s", entry_ids: ["b", "c"], messages: [say("x"), say("y")] });
  await bus.call(appendEntry, { session_id: "s", entry_id: "d", message: say("z") });
  const { messages } = await bus.call(sessionMessages, { session_id: "s" });
  expect(messages.map(({ entry_id }) => entry_id)).toEqual(["a", "b", "c", "d"]);
  expect(messages[0]?.message).toEqual(say("hello"));
  expect(await bus.call(listSessions, {})).toMatchObject({
    total: 1,
    sessions: [{ session_id: "s", entry_count: 4, last_message_summary: "z" }],
  });
});
test("racing appends of two workers all arrive once", async () => {
  await using bus = await testBus([worker]);
  const { session_id } = await bus.call(createSession, {});
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => bus.call(appendEntry, { session_id, entry_id: `e${i % 20}`, message: say(`${i % 20}`) })),
  );
  const { messages } = await bus.call(sessionMessages, { session_id });
  expect(new Set(messages.map(({ entry_id }) => entry_id)).size).toBe(20);
  expect(messages).toHaveLength(20);
});
test("bad input names its field", async () => {
  await using bus = await testBus([worker]);
  await expect(bus.call("session-tree::append", { session_id: "s" })).rejects.toMatchObject({
    code: "invalid_payload",
    message: expect.stringContaining("'message'"),
  });
  await expect(bus.call("session-tree::ensure", { session_id: "a/b" })).rejects.toMatchObject({ code: "invalid_payload" });
  await expect(bus.call("session-tree::messages", { session_id: "none" })).rejects.toMatchObject({ code: "session_not_found" });
});
test("an agent's raw writes do not reach the transcript's scopes", async () => {
  await using bus = await testBus([worker]);
  await bus.call(ensureSession, { session_id: "s" });
  const write = { scope: "session_tree_meta", key: "s", value: {} };
  await expect(bus.call("state::set", write, { origin: "agent" })).rejects.toMatchObject({ code: "FORBIDDEN" });
});
