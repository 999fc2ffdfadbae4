// The demo model, word by word, through the whole kit.
import type { AgentMessage, AssistantMessage } from "@iii/contracts";
import { type PlayOptions, play } from "@iii/provider-kit/testing";
import { ManualClock, until } from "@iii/sdk/testing";
import { describe, expect, test } from "vitest";
import { spec } from "../src/register.ts";
import { stage } from "../src/stage.ts";

const user = (text: string, timestamp = 1): AgentMessage => ({ role: "user", content: [{ type: "text", text }], timestamp });
const ask = (messages: AgentMessage[], options: PlayOptions & { clock?: ManualClock } = {}) => {
  const clock = options.clock ?? new ManualClock(0);
  const model = spec.models[0];
  return play(spec, [], {
    ...(model === undefined ? {} : { model }),
    ...options,
    clock,
    transport: stage(clock),
    request: { model: "demo", messages },
  });
};
const textOf = (message: AssistantMessage) => message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
const callsOf = (message: AssistantMessage) => message.content.filter((block) => block.type === "function_call");

test("U14 the mark stands behind a code fence, on a line of its own", async () => {
  const { message } = await ask([user("say ```\ncode\n```")]);
  expect(textOf(message)).toBe("```\ncode\n```\n\n(demo)");
});

test("say streams the text word by word, marks it, and costs nothing", async () => {
  const { message, events } = await ask([user("say hello wide world")]);
  expect(textOf(message)).toBe("hello wide world (demo)");
  expect(events.filter((event) => event.type === "text_delta")).toHaveLength(4);
  expect(message).toMatchObject({ stop_reason: "end", provider: "scripted", model: "demo", usage: { cost_usd: 0 } });
  expect(message.usage?.output).toBeGreaterThan(0);
});

test("call makes one call of the tool, and its result becomes the answer", async () => {
  const asked = [user('call shell::fs::ls {"path":"."}')];
  const { message } = await ask(asked);
  const [call] = callsOf(message);
  expect(callsOf(message)).toHaveLength(1);
  expect(call).toMatchObject({ function_id: "agent_trigger", arguments: { function: "shell::fs::ls", payload: { path: "." } } });
  expect(message.stop_reason).toBe("function_call");
  const result: AgentMessage = {
    role: "function_result",
    function_call_id: call?.id ?? "",
    function_id: "shell::fs::ls",
    content: [{ type: "text", text: "README.md" }],
    details: null,
    is_error: false,
    timestamp: 3,
  };
  expect(textOf((await ask([...asked, message, result])).message)).toBe("README.md (demo)");
});

test("call ids follow from the conversation: the same again, another in the next round", async () => {
  const asked = [user("call f {}")];
  const first = (await ask(asked)).message;
  expect((await ask(asked)).message.content).toEqual(first.content);
  const next = (await ask([...asked, first, user("call f {}", 9)])).message;
  expect(callsOf(next)[0]?.id).not.toBe(callsOf(first)[0]?.id);
});

test("calls makes one batch", async () => {
  const { message } = await ask([user('calls [{"function":"a::b","payload":{"x":1}},{"function":"c::d"}]')]);
  expect(callsOf(message).map((call) => call.arguments)).toEqual([
    { function: "a::b", payload: { x: 1 } },
    { function: "c::d", payload: {} },
  ]);
});

describe("slow", () => {
  test("spreads the words over the time", async () => {
    const clock = new ManualClock(0);
    const seen: number[] = [];
    const send = async (event: { type: string }) => void (event.type === "text_delta" && seen.push(clock.now()));
    const asking = ask([user("slow 3000 a b")], { clock, sink: { send } });
    await clock.advance(3_000);
    expect(textOf((await asking).message)).toBe("a b (demo)");
    expect(seen).toEqual([1000, 2000, 3000]);
  });

  test("ends at once when aborted", async () => {
    const clock = new ManualClock(0);
    const abort = new AbortController();
    const asking = ask([user("slow 60000 a b c")], { clock, signal: abort.signal });
    await until(() => clock.pending > 1, "the pause");
    abort.abort();
    expect((await asking).message.stop_reason).toBe("aborted");
    expect(clock.pending).toBe(0);
  });
});

test.each(["auth_expired", "rate_limited", "context_overflow", "transient", "permanent"])("fail %s ends with that kind", async (kind) => {
  const { message, attempts } = await ask([user(`fail ${kind}`)]);
  expect(message).toMatchObject({ stop_reason: "error", error_kind: kind });
  expect(attempts).toBe(1);
});

test("cut breaks off and is an error", async () => {
  const { message } = await ask([user("cut")]);
  expect(message).toMatchObject({ stop_reason: "error", error_kind: "transient" });
  expect(message.error_message).toContain("truncated");
});

test.each(["hello", "", "call", "call f {oops", "calls []", "slow soon", "fail nicely", "toString x"])(
  "'%s' gets a friendly answer",
  async (text) => {
    const { message } = await ask([user(text)]);
    expect(message.stop_reason).toBe("end");
    expect(textOf(message)).toMatch(/\(demo\)$/);
  },
);
