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
  await expect(bus.call("session-tree::append", { session_id: "none", message: say("x") })).rejects.toMatchObject({
    code: "session_not_found",
  });
});
test("U9 the messages of an unknown session are none, and no error", async () => {
  await using bus = await testBus([worker]);
  expect(await bus.call(sessionMessages, { session_id: "none" })).toEqual({ messages: [] });
});
test("K2.7 a malformed row of one session is reported, and the list goes on", async () => {
  await using bus = await testBus([worker]);
  await bus.call(ensureSession, { session_id: "good" });
  await bus.call("state::set", { scope: "session_tree_meta", key: "bad", value: { session_id: "bad", entry_count: "many" } });
  const { sessions, total, unreadable } = await bus.call(listSessions, {});
  expect(sessions.map((row) => row.session_id)).toEqual(["good"]);
  expect(total).toBe(1);
  expect(unreadable).toMatchObject([{ session_id: "bad" }]);
});
test("K2.7 a malformed meta or entry costs neither the session nor what can be read of it", async () => {
  await using bus = await testBus([worker]);
  await bus.call(appendBatch, { session_id: "s", entry_ids: ["a", "b", "c"], messages: [say("x"), say("y"), say("z")], create: true });
  const broken = await bus.call<{ message: unknown }>("state::get", { scope: "session_tree:s", key: "b" });
  await bus.call("state::set", { scope: "session_tree:s", key: "b", value: { ...broken, message: "no message" } });
  await bus.call("state::set", { scope: "session_tree_meta", key: "s", value: "no meta" });
  await bus.crash();
  const seen = await bus.call(sessionMessages, { session_id: "s" });
  expect(seen.messages.map(({ entry_id }) => entry_id)).toEqual(["a", "c"]);
  expect(seen.unreadable).toMatchObject([{ entry_id: "b" }]);
  await bus.call(appendEntry, { session_id: "s", entry_id: "d", message: say("on") });
  expect((await bus.call(sessionMessages, { session_id: "s" })).messages.map(({ entry_id }) => entry_id)).toEqual(["a", "c", "d"]);
  expect((await bus.call(listSessions, {})).sessions).toMatchObject([{ session_id: "s", entry_count: 4 }]);
});
test("case 67 an entry whose parent is not there begins the path, and says what is missing", async () => {
  await using bus = await testBus([worker]);
  await bus.call(appendBatch, { session_id: "s", entry_ids: ["a", "b"], messages: [say("x"), say("y")], create: true });
  await bus.call("state::delete", { scope: "session_tree:s", key: "a" });
  expect(await bus.call(sessionMessages, { session_id: "s" })).toMatchObject({
    messages: [{ entry_id: "b" }],
    unreadable: [{ entry_id: "a" }],
  });
});
test("an agent's raw writes do not reach the transcript's scopes", async () => {
  await using bus = await testBus([worker]);
  await bus.call(ensureSession, { session_id: "s" });
  const write = { scope: "session_tree_meta", key: "s", value: {} };
  await expect(bus.call("state::set", write, { origin: "agent" })).rejects.toMatchObject({ code: "FORBIDDEN" });
});
test.each([
  [
    "K2.1 a message that nests too deep",
    (() => {
      let value: unknown = 1;
      for (let level = 0; level < 500; level += 1) value = [value];
      return { role: "custom" as const, custom_type: "x", content: value, timestamp: 1 };
    })(),
    "payload_too_deep",
  ],
  ["K2.2 a message that is larger than a row", say("x".repeat(15 * 1024 * 1024)), "payload_too_large"],
])("%s is refused by name, and the session goes on", async (_title, message, code) => {
  await using bus = await testBus([worker]);
  await expect(bus.call(appendEntry, { session_id: "s", message, create: true })).rejects.toMatchObject({ code });
  await bus.call(appendEntry, { session_id: "s", message: say("on"), create: true });
  expect((await bus.call(sessionMessages, { session_id: "s" })).messages).toHaveLength(1);
});
test("K2.1 odd keys are data", async () => {
  await using bus = await testBus([worker]);
  const content = JSON.parse('{"__proto__":{"a":1},"constructor":2,"prototype":{"__proto__":null}}');
  const message = { role: "custom" as const, custom_type: "x", content, timestamp: 1 };
  await bus.call(appendEntry, { session_id: "s", message, create: true });
  const [stored] = (await bus.call(sessionMessages, { session_id: "s" })).messages;
  expect(JSON.stringify(stored?.message)).toBe(JSON.stringify(message));
});
