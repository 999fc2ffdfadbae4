// Answers of servers that speak Chat Completions, each in the shape that its maker documents. The words are ours.
import type { Transcript } from "@iii/provider-kit/testing";

type Fields = Record<string, unknown>;
const chunk = (fields: Fields) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", ...fields })}`;
const delta = (part: Fields, more: Fields = {}) => chunk({ choices: [{ index: 0, delta: part, finish_reason: null, ...more }] });
const text = (content: string, more: Fields = {}) => delta({ content }, more);
const end = (finish_reason: string, rest: Fields = {}, part: Fields = {}) =>
  chunk({ choices: [{ index: 0, delta: part, finish_reason }], ...rest });
const counts = { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 };
const usage = (more: Fields = {}) => chunk({ choices: [], usage: { ...counts, ...more } });
const call = (index: number | undefined, id: string | undefined, name: string | undefined, args: unknown, more: Fields = {}) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id, type: "function" }),
  function: { ...(name === undefined ? {} : { name }), arguments: args },
  ...more,
});
const calls = (...list: Fields[]) => delta({ tool_calls: list });
const DONE = "data: [DONE]";
const whole = JSON.stringify({ function: "shell::fs::ls", payload: { path: "." } });
const pieces = [whole.slice(0, 12), whole.slice(12, 30), whole.slice(30)];

export const transcripts: readonly Transcript[] = [
  {
    title: "text",
    source: "OpenAI, Chat Completions streaming",
    events: [delta({ role: "assistant", content: "", refusal: null }), text("Hel"), text("lo"), end("stop"), usage(), DONE],
  },
  {
    title: "two calls in pieces",
    source: "OpenAI, function calling",
    events: [
      calls(call(0, "call_a", "agent_trigger", "")),
      ...pieces.map((piece) => calls(call(0, undefined, undefined, piece))),
      calls(call(1, "call_b", "agent_trigger", "")),
      ...pieces.map((piece) => calls(call(1, undefined, undefined, piece))),
      end("tool_calls"),
      usage(),
      DONE,
    ],
  },
  {
    title: "a refusal",
    source: "OpenAI, structured outputs",
    events: [
      delta({ role: "assistant", content: "", refusal: "" }),
      delta({ refusal: "I cannot " }),
      delta({ refusal: "do that." }),
      end("stop"),
      usage(),
      DONE,
    ],
  },
  {
    title: "the older function_call",
    source: "OpenAI, deprecated functions",
    events: [
      delta({ role: "assistant", content: null, function_call: { name: "agent_trigger", arguments: "" } }),
      ...pieces.map((piece) => delta({ function_call: { arguments: piece } })),
      end("function_call"),
      DONE,
    ],
  },
  {
    title: "reasoning under two names",
    source: "vLLM, reasoning outputs",
    events: [
      delta({ role: "assistant", content: "" }),
      delta({ reasoning: "Let me ", reasoning_content: "Let me " }),
      delta({ reasoning: "see.", reasoning_content: "see." }),
      text("Done."),
      end("stop", {}, { content: "" }),
      DONE,
    ],
  },
  {
    title: "usage in every chunk",
    source: "vLLM, continuous_usage_stats",
    events: [
      chunk({
        choices: [{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }],
        usage: { ...counts, completion_tokens: 0 },
      }),
      chunk({
        choices: [{ index: 0, delta: { content: "Hi" }, logprobs: null, finish_reason: null }],
        usage: { ...counts, completion_tokens: 1 },
      }),
      chunk({ choices: [{ index: 0, delta: { content: "" }, finish_reason: "stop", stop_reason: null }], usage: counts }),
      DONE,
    ],
  },
  {
    title: "whole calls, all with index 0",
    source: "Ollama, OpenAI compatibility",
    events: [
      delta({ role: "assistant", content: "", tool_calls: [call(0, "call_1", "agent_trigger", whole)] }),
      delta({ role: "assistant", content: "", tool_calls: [call(0, "call_2", "agent_trigger", '{"function":"a::b"}')] }),
      end("tool_calls", {}, { role: "assistant", content: "" }),
      DONE,
    ],
  },
  {
    title: "thinking as `reasoning`",
    source: "Ollama, thinking",
    events: [
      delta({ role: "assistant", content: "", reasoning: "Hm." }),
      text("Yes."),
      end("stop", {}, { role: "assistant", content: "" }),
      usage(),
      DONE,
    ],
  },
  {
    title: "a call in pieces behind text",
    source: "LM Studio, tool use",
    events: [
      delta({ role: "assistant", content: "Looking." }),
      calls(call(0, "365174485", "agent_trigger", "")),
      ...pieces.map((piece) => calls(call(0, undefined, undefined, piece))),
      end("tool_calls"),
      DONE,
    ],
  },
  {
    title: "timings at the end",
    source: "llama.cpp, llama-server",
    events: [
      delta({ role: "assistant", content: null }),
      delta({ reasoning_content: "Hm" }),
      text("Fine."),
      end("stop"),
      chunk({ choices: [], usage: counts, timings: { prompt_n: 20, predicted_n: 9, cache_n: 0 } }),
      DONE,
    ],
  },
  {
    title: "comments and reasoning details",
    source: "OpenRouter, reasoning tokens",
    events: [
      ": OPENROUTER PROCESSING",
      chunk({
        provider: "x",
        choices: [
          {
            index: 0,
            delta: {
              role: "assistant",
              content: "",
              reasoning: "I ",
              reasoning_details: [{ type: "reasoning.text", text: "I ", index: 0, format: "anthropic-claude-v1" }],
            },
            finish_reason: null,
            native_finish_reason: null,
          },
        ],
      }),
      delta({ content: "", reasoning: "see", reasoning_details: [{ type: "reasoning.text", text: "see", index: 0, signature: "sig" }] }),
      ": OPENROUTER PROCESSING",
      text("Good."),
      chunk({
        choices: [
          { index: 0, delta: { role: "assistant", content: "" }, finish_reason: "stop", native_finish_reason: "end_turn", logprobs: null },
        ],
      }),
      usage({ cost: 0.001 }),
      DONE,
    ],
  },
  {
    title: "encrypted reasoning before a call",
    source: "OpenRouter, preserving reasoning blocks",
    events: [
      delta({ role: "assistant", content: "", reasoning_details: [{ type: "reasoning.encrypted", data: "gAAA", id: "rs_1", index: 0 }] }),
      calls(call(0, "call_a", "agent_trigger", "")),
      ...pieces.map((piece) => calls(call(0, undefined, undefined, piece))),
      end("tool_calls"),
      usage(),
      DONE,
    ],
  },
  {
    title: "a whole call beside its end word",
    source: "Mistral, function calling",
    events: [
      delta({ role: "assistant", content: "" }),
      chunk({
        choices: [
          {
            index: 0,
            delta: { content: "", tool_calls: [{ id: "D681PevKs", function: { name: "agent_trigger", arguments: whole }, index: 0 }] },
            finish_reason: "tool_calls",
          },
        ],
        usage: counts,
      }),
      DONE,
    ],
  },
  {
    title: "thinking as parts of the content",
    source: "Mistral, reasoning",
    events: [
      delta({ role: "assistant", content: "" }),
      delta({ content: [{ type: "thinking", thinking: [{ type: "text", text: "Let me" }] }] }),
      delta({ content: [{ type: "thinking", thinking: [{ type: "text", text: " see." }], closed: true }] }),
      delta({
        content: [
          { type: "text", text: "It is " },
          { type: "reference", reference_ids: [1] },
        ],
      }),
      text("four."),
      end("stop", { usage: counts }),
      DONE,
    ],
  },
  {
    title: "reasoning, then text",
    source: "DeepSeek, thinking mode",
    events: [
      delta({ role: "assistant", content: null, reasoning_content: "" }),
      delta({ content: null, reasoning_content: "Nine " }),
      delta({ content: null, reasoning_content: "or ten?" }),
      delta({ content: "Ten.", reasoning_content: null }),
      end(
        "stop",
        { usage: { ...counts, prompt_cache_hit_tokens: 12, prompt_cache_miss_tokens: 8 } },
        { content: "", reasoning_content: null },
      ),
      DONE,
    ],
  },
  {
    title: "reasoning before a call",
    source: "DeepSeek, tool calls in thinking mode",
    events: [
      delta({ role: "assistant", content: null, reasoning_content: "I must look." }),
      delta({ tool_calls: [call(0, "call_00_x", "agent_trigger", "")] }),
      ...pieces.map((piece) => calls(call(0, undefined, undefined, piece))),
      end("tool_calls", { usage: counts }, { content: "", reasoning_content: null }),
      DONE,
    ],
  },
  {
    title: "filter results around the text",
    source: "Azure OpenAI, content streaming",
    events: [
      chunk({ choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }] }),
      delta({ role: "assistant", content: "" }, { content_filter_results: {} }),
      text("Hello", { content_filter_results: { hate: { filtered: false, severity: "safe" } } }),
      end("stop"),
      usage(),
      DONE,
    ],
  },
  {
    title: "usage inside the choice",
    source: "Moonshot AI, Kimi streaming",
    events: [
      delta({ role: "assistant", content: "" }),
      text("你好"),
      chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop", usage: { ...counts, cached_tokens: 5 } }] }),
      DONE,
    ],
  },
  {
    title: "a whole call without index, with its signature",
    source: "Gemini, OpenAI compatibility and thought signatures",
    events: [
      chunk({
        choices: [
          {
            index: 0,
            delta: {
              role: "assistant",
              tool_calls: [
                call(undefined, "function-call-1", "agent_trigger", whole, { extra_content: { google: { thought_signature: "c2ln" } } }),
              ],
            },
            finish_reason: null,
          },
        ],
      }),
      end("tool_calls", { usage: { ...counts, total_tokens: 60 } }, { role: "assistant" }),
      DONE,
    ],
  },
  {
    title: "usage under the vendor's own name",
    source: "Groq, text chat streaming",
    events: [
      chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }], x_groq: { id: "req_1" } }),
      text("Fast"),
      end("stop", { x_groq: { id: "req_1", usage: counts } }),
      DONE,
    ],
  },
  {
    title: "thinking counted apart",
    source: "xAI, reasoning",
    events: [
      delta({ role: "assistant", reasoning_content: "Hm." }),
      text("42"),
      end("stop"),
      usage({ total_tokens: 129, completion_tokens_details: { reasoning_tokens: 100 } }),
      DONE,
    ],
  },
  {
    title: "a call behind reasoning, with usage beside the end word",
    source: "Z.ai, GLM tool streaming",
    events: [
      delta({ role: "assistant", reasoning_content: "Look " }),
      delta({ role: "assistant", reasoning_content: "first." }),
      calls(call(0, "call_8", "agent_trigger", pieces[0])),
      ...pieces.slice(1).map((piece) => calls(call(0, undefined, undefined, piece))),
      end("tool_calls", { usage: { ...counts, prompt_tokens_details: { cached_tokens: 3 } } }, { role: "assistant", content: "" }),
      DONE,
    ],
  },
  {
    title: "an end word of its own, no closing line",
    source: "Hugging Face, text-generation-inference Messages API",
    events: [text("Deep"), text(" learning"), end("eos_token", {}, { role: "assistant", content: "" })],
  },
  {
    title: "cut by length, calls and all",
    source: "Together AI, streaming",
    events: [text("So "), calls(call(0, "call_t", "agent_trigger", whole)), end("length", { usage: counts }), DONE],
  },
  {
    title: "text beside the end word",
    source: "SGLang, OpenAI-compatible API",
    events: [delta({ role: "assistant", content: "" }), end("stop", { usage: counts }, { content: "All at once." }), DONE],
  },
  {
    title: "citations beside the chunks",
    source: "Perplexity, Sonar streaming",
    events: [
      chunk({
        citations: ["https://a.example"],
        search_results: [],
        choices: [
          { index: 0, delta: { role: "assistant", content: "See" }, message: { role: "assistant", content: "See" }, finish_reason: null },
        ],
      }),
      chunk({
        citations: ["https://a.example"],
        choices: [{ index: 0, delta: { content: " it." }, message: { role: "assistant", content: "See it." }, finish_reason: "stop" }],
        usage: counts,
      }),
      DONE,
    ],
  },
];
