// The property of the rule, over the answers of two dozen servers and features and of one that runs here.
import { aimock, honest, type ModelServer, tryVariants } from "@iii/provider-kit/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { spec } from "../src/register.ts";
import { transcripts } from "./transcripts.ts";

honest(spec, transcripts);

test("each transcript is another server's or another shape", () => {
  expect(new Set(transcripts.map(({ title, source }) => `${title} ${source}`)).size).toBe(transcripts.length);
});

const SAID = ["plain", "think", "calls"];
let server: ModelServer;
beforeAll(async () => {
  server = await aimock([
    { match: { userMessage: "plain" }, response: { content: "Grüße 你好 🌍" } },
    { match: { userMessage: "think" }, response: { content: "Done.", reasoning: "Let me see.", reasoningSignature: "c2ln" } },
    {
      match: { userMessage: "calls" },
      response: {
        content: "Both.",
        toolCalls: [
          { id: "call_1", name: "agent_trigger", arguments: { function: "a::b", payload: { x: 1 } } },
          { id: "call_2", name: "agent_trigger", arguments: { function: "c::d", payload: {} } },
        ],
      },
    },
  ]);
});
afterAll(() => server[Symbol.asyncDispose]());

test.each(SAID)("P1.1 what aimock answers to '%s': spoiled anywhere, it is the same answer or an error", async (content) => {
  const body = JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 100, stream: true, messages: [{ role: "user", content }] });
  const answer = await fetch(`${server.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "k" },
    body,
  });
  const events = (await answer.text()).split("\n\n").filter((event) => event.trim() !== "");
  expect(events.length).toBeGreaterThan(2);
  await tryVariants(spec, { title: content, source: "aimock", events });
});
