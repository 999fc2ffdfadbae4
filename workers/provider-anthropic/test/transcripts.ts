// Answers of servers that speak Anthropic's Messages wire, each in the shape that its maker documents. The words are ours.
import type { Transcript } from "@iii/provider-kit/testing";

type Fields = Record<string, unknown>;
const event = (type: string, fields: Fields = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}`;
/** Some servers leave the event's name out. */
const bare = (list: readonly string[]) => list.map((one) => one.replace(/^event: .*\n/, ""));

const begin = (usage: Fields = { input_tokens: 25, output_tokens: 1 }) =>
  event("message_start", {
    message: { id: "msg_1", type: "message", role: "assistant", content: [], model: "m", stop_reason: null, stop_sequence: null, usage },
  });
const open = (index: number, content_block: Fields) => event("content_block_start", { index, content_block });
const delta = (index: number, part: Fields) => event("content_block_delta", { index, delta: part });
const close = (index: number) => event("content_block_stop", { index });
const end = (stop_reason: string, usage: Fields = { output_tokens: 15 }, more: Fields = {}) => [
  event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage, ...more }),
  event("message_stop"),
];
const text = (index: number, ...deltas: string[]) => [
  open(index, { type: "text", text: "" }),
  ...deltas.map((one) => delta(index, { type: "text_delta", text: one })),
  close(index),
];
const tool = (index: number, id: string, ...pieces: string[]) => [
  open(index, { type: "tool_use", id, name: "agent_trigger", input: {} }),
  ...pieces.map((partial_json) => delta(index, { type: "input_json_delta", partial_json })),
  close(index),
];
const thinking = (index: number, signature: string | undefined, ...deltas: string[]) => [
  open(index, { type: "thinking", thinking: "", ...(signature === undefined ? {} : { signature: "" }) }),
  ...deltas.map((one) => delta(index, { type: "thinking_delta", thinking: one })),
  ...(signature === undefined ? [] : [delta(index, { type: "signature_delta", signature })]),
  close(index),
];
const ping = event("ping");
const pieces = ["", '{"function":', '"shell::fs::ls",', '"payload":{"path":"."}}'];
const whole = pieces.join("");

export const transcripts: readonly Transcript[] = [
  {
    title: "text with a ping",
    source: "Anthropic, streaming messages",
    events: [begin(), ...text(0, "Hel", "lo").toSpliced(1, 0, ping), ...end("end_turn")],
  },
  {
    title: "text, then a tool",
    source: "Anthropic, streaming with tool use",
    events: [begin(), ...text(0, "Let me ", "look."), ...tool(1, "toolu_1", ...pieces), ...end("tool_use")],
  },
  {
    title: "signed thinking, then text",
    source: "Anthropic, streaming with extended thinking",
    events: [begin(), ...thinking(0, "EqQBCgIYAhIM==", "27 * ", "453"), ...text(1, "12,231"), ...end("end_turn")],
  },
  {
    title: "redacted thinking",
    source: "Anthropic, thinking redaction",
    events: [begin(), open(0, { type: "redacted_thinking", data: "RURBQ1RFRA==" }), close(0), ...text(1, "Yes."), ...end("end_turn")],
  },
  {
    title: "thinking between two tools",
    source: "Anthropic, interleaved thinking",
    events: [
      begin(),
      ...thinking(0, "s1", "First."),
      ...tool(1, "toolu_a", whole),
      ...thinking(2, "s2", "Then."),
      ...tool(3, "toolu_b", '{"function":"c::d"}'),
      ...end("tool_use"),
    ],
  },
  {
    title: "a search that ran at the vendor",
    source: "Anthropic, web search tool",
    events: [
      begin(),
      ...text(0, "I'll search."),
      open(1, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
      delta(1, { type: "input_json_delta", partial_json: '{"query":"weather"}' }),
      close(1),
      open(2, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
      close(2),
      open(3, { type: "text", text: "" }),
      delta(3, { type: "citations_delta", citation: { type: "web_search_result_location", url: "https://a.example" } }),
      delta(3, { type: "text_delta", text: "Sunny." }),
      close(3),
      ...end("end_turn", { output_tokens: 510, server_tool_use: { web_search_requests: 1 } }),
    ],
  },
  { title: "cut by length", source: "Anthropic, handling stop reasons", events: [begin(), ...text(0, "Once upon"), ...end("max_tokens")] },
  {
    title: "cut by length inside a tool",
    source: "Anthropic, truncated tool use",
    events: [begin(), ...tool(0, "toolu_1", '{"function":"a::b"}'), ...end("max_tokens")],
  },
  {
    title: "a stop sequence",
    source: "Anthropic, handling stop reasons",
    events: [begin(), ...text(0, "1, 2, 3"), ...end("stop_sequence")],
  },
  { title: "a pause", source: "Anthropic, handling stop reasons", events: [begin(), ...text(0, "Still at it."), ...end("pause_turn")] },
  { title: "a tool without input", source: "Anthropic, tool use", events: [begin(), ...tool(0, "toolu_1", ""), ...end("tool_use")] },
  {
    title: "two tools at once",
    source: "Anthropic, parallel tool use",
    events: [begin(), ...tool(0, "toolu_1", whole), ...tool(1, "toolu_2", ...pieces), ...end("tool_use")],
  },
  {
    title: "input in coarse pieces",
    source: "Anthropic, fine-grained tool streaming",
    events: [begin(), ...tool(0, "toolu_1", whole.slice(0, 40), whole.slice(40)), ...end("tool_use")],
  },
  {
    title: "cached prompt",
    source: "Anthropic, prompt caching",
    events: [
      begin({ input_tokens: 5, cache_read_input_tokens: 1500, cache_creation_input_tokens: 300, output_tokens: 1 }),
      ...text(0, "Hi"),
      ...end("end_turn"),
    ],
  },
  {
    title: "unsigned thinking, then a tool",
    source: "MiniMax, Anthropic API compatibility",
    events: [begin(), ...thinking(0, undefined, "Look."), ...tool(1, "call_1", whole), ...end("tool_use")],
  },
  {
    title: "thinking signed with the message's id",
    source: "DeepSeek, Anthropic API",
    events: [
      begin(),
      ...thinking(0, "msg_1", "Hm."),
      ...text(1, "Ten."),
      ...end("end_turn", { input_tokens: 20, output_tokens: 9, cache_read_input_tokens: 12 }),
    ],
  },
  {
    title: "usage at the end only",
    source: "Z.ai, Claude API compatibility",
    events: [
      begin({ input_tokens: 0, output_tokens: 0 }),
      ping,
      ...text(0, "你", "好"),
      ...end("end_turn", { input_tokens: 20, output_tokens: 4, cache_read_input_tokens: 3 }),
    ],
  },
  {
    title: "numbers of the platform at the end",
    source: "Amazon Bedrock, InvokeModelWithResponseStream",
    events: bare([
      begin(),
      ...text(0, "Hi"),
      ...end("end_turn").slice(0, 1),
      event("message_stop", { "amazon-bedrock-invocationMetrics": { inputTokenCount: 25, outputTokenCount: 15 } }),
    ]),
  },
  {
    title: "no names on the events",
    source: "LiteLLM, /v1/messages",
    events: bare([begin(), ...text(0, "Hel", "lo"), ...tool(1, "toolu_1", ...pieces), ...end("tool_use")]),
  },
  {
    title: "comments while it thinks",
    source: "OpenRouter, Anthropic Messages endpoint",
    events: [
      ": OPENROUTER PROCESSING",
      begin(),
      ": OPENROUTER PROCESSING",
      ...text(0, "Good."),
      ...end("end_turn", { input_tokens: 25, output_tokens: 15, cost: 0.01 }),
    ],
  },
  {
    title: "a whole input in one piece",
    source: "Ollama, Anthropic compatibility",
    events: [
      begin({ input_tokens: 0, output_tokens: 0 }),
      ...text(0, "Looking."),
      ...tool(1, "call_ab12", whole),
      ...end("tool_use", { input_tokens: 30, output_tokens: 12 }),
    ],
  },
  {
    title: "thinking and text of a local model",
    source: "llama.cpp, llama-server /v1/messages",
    events: [begin(), ...thinking(0, "", "Hm", "m."), ...text(1, "Fine."), ...end("end_turn")],
  },
  {
    title: "an input that stands in the start",
    source: "vLLM, Anthropic Messages API",
    events: [
      begin(),
      open(0, { type: "tool_use", id: "chatcmpl-tool-1", name: "agent_trigger", input: JSON.parse(whole) }),
      close(0),
      ...end("tool_use"),
    ],
  },
];
