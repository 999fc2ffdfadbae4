// An instant model server on loopback, in the shape of Anthropic's messages stream, or as an OpenAI completion: a question gets one tool call, its result an answer.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { play } from "../support/processes.ts";

const WORDS = "The echo came back as it was sent .".split(" ");
const INPUT = JSON.stringify({ function: "bench::echo", payload: { text: "hello" } });
let calls = 0;

function stream(response: ServerResponse, events: readonly ({ type: string } & Record<string, unknown>)[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
}

function answer(response: ServerResponse, call: boolean): void {
  calls += 1;
  const block = call ? { type: "tool_use", id: `toolu_${calls}`, name: "agent_trigger", input: {} } : { type: "text", text: "" };
  const deltas = call
    ? [{ type: "input_json_delta", partial_json: INPUT }]
    : WORDS.map((word) => ({ type: "text_delta", text: `${word} ` }));
  stream(response, [
    {
      type: "message_start",
      message: { id: `msg_${calls}`, role: "assistant", content: [], usage: { input_tokens: 20, output_tokens: 1 } },
    },
    { type: "content_block_start", index: 0, content_block: block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index: 0, delta })),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: call ? "tool_use" : "end_turn" }, usage: { output_tokens: 10 } },
    { type: "message_stop" },
  ]);
}

/** The same as one completion of `/v1/chat/completions`. */
function complete(response: ServerResponse, call: boolean): void {
  calls += 1;
  const asked = { id: `call_${calls}`, type: "function", function: { name: "echo", arguments: JSON.stringify({ text: "hello" }) } };
  const message = { role: "assistant", ...(call ? { content: null, tool_calls: [asked] } : { content: WORDS.join(" ") }) };
  const choice = { index: 0, message, finish_reason: call ? "tool_calls" : "stop" };
  const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ id: `chatcmpl-${calls}`, object: "chat.completion", created: 0, model: "any", choices: [choice], usage }));
}

interface Asked {
  readonly messages: readonly { readonly role?: string; readonly content: string | readonly { readonly type: string }[] }[];
}

const hasResult = ({ messages }: Asked): boolean => {
  const { role, content } = messages.at(-1) ?? { content: "" };
  if (role === "tool") return true;
  return Array.isArray(content) && content.some((block) => block.type === "tool_result");
};

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const isCall = !hasResult(JSON.parse(Buffer.concat(parts).toString()) as Asked);
    if (request.url?.endsWith("/chat/completions") === true) complete(response, isCall);
    else answer(response, isCall);
  });
});
server.listen(0, "127.0.0.1", () => play({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
