// The whole path with the wire of real vendors, spoken by a third party's model server in its own process.
import { aimock } from "@iii/provider-kit/testing";
import { expect, test } from "vitest";
import { startStack } from "../support/stack.ts";
import { ended, parked, post, resolve, textOf, transcript } from "../support/turns.ts";

const PROMPT = "what is in the folder?";
const calls = (ids: readonly string[]) =>
  ids.map((id, n) => ({ id, name: "agent_trigger", arguments: { function: "shell::fs::ls", payload: { path: n === 0 ? "." : "sub" } } }));
const FIXTURES = [
  {
    match: { userMessage: PROMPT, hasToolResult: true },
    response: { content: "It is empty.", usage: { input_tokens: 30, output_tokens: 5 } },
  },
  {
    match: { userMessage: PROMPT, hasToolResult: false },
    response: { content: "Looking.", toolCalls: calls(["call_a", "call_b"]), usage: { input_tokens: 20, output_tokens: 9 } },
  },
];

test.each([
  {
    provider: "anthropic",
    model: "claude-haiku-4-5",
    env: (url: string) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-e2e-0123456789" }),
  },
  {
    provider: "openai",
    model: "gpt-5-mini",
    env: (url: string) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "sk-e2e-0123456789" }),
  },
])("$provider: two parallel calls are approved, answered in order and priced; the key is nowhere", async ({ provider, model, env }) => {
  await using server = await aimock(FIXTURES);
  const variables = env(server.url);
  await using stack = await startStack({ env: variables });
  await post(stack, "s1", PROMPT, { provider, model });
  for (const held of await parked(stack, "s1", 2)) await resolve(stack, held, "allow");
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped", stop_reason: "end" });
  const { messages, calls: made, results } = await transcript(stack, "s1");
  expect(textOf(messages.at(-1))).toBe("It is empty.");
  expect(made).toHaveLength(2);
  expect(results.map((result) => result.function_call_id)).toEqual(made.map((call) => call.id));
  const last = messages.at(-1);
  expect(last?.role === "assistant" ? last.usage : undefined).toMatchObject({ input: 30, output: 5 });
  expect(last?.role === "assistant" ? last.usage?.cost_usd : 0).toBeGreaterThan(0);
  const secret = Object.values(variables).find((value) => value.startsWith("sk-")) ?? "sk-";
  expect(JSON.stringify(stack.output())).not.toContain(secret);
  for (const scope of ["session", "session_tree:s1", "approvals", "models"]) {
    expect(JSON.stringify(await stack.trigger("state::list", { scope }))).not.toContain(secret);
  }
  expect(JSON.stringify(await stack.trigger("engine::traces::list", { search_all_spans: true, limit: 5_000 }))).not.toContain(secret);
});
