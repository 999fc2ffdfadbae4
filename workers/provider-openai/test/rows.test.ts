// What servers send that was once taken for good, or lost: row by row on the Chat Completions wire.
import { bytes, play, type Reply } from "@iii/provider-kit/testing";
import { ManualClock } from "@iii/sdk/testing";
import { describe, expect, test } from "vitest";
import { spec } from "../src/register.ts";

const sse = (...list: (object | string)[]) =>
  list.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("");
const delta = (value: object, finish_reason: unknown = null) => ({ choices: [{ index: 0, delta: value, finish_reason }] });
const text = (content: unknown) => delta({ content });
const finish = (reason: unknown) => delta({}, reason);
const call = (args: unknown, more: object = {}) =>
  delta({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: args }, ...more }] });
/** Time passes, so that what is tried again is. */
const run = async (body: string, reply: Reply = {}) => {
  const clock = new ManualClock(0);
  const playing = play(spec, [{ ...reply, chunks: [bytes(body)] }], { clock });
  await clock.advance(100_000);
  return await playing;
};
const said = async (...list: (object | string)[]) => (await run(sse(...list, "[DONE]"))).message;
const error = (says: string | RegExp) => ({ stop_reason: "error", error_message: expect.stringMatching(says) });
const answer = (...content: object[]) => ({ stop_reason: "end", content });
const t = (value: string) => ({ type: "text", text: value });

test("K1.1 an argument delta that cannot be read stops the call", async () => {
  const piece = (args: string) => JSON.stringify(delta({ tool_calls: [{ index: 0, function: { arguments: args } }] }));
  const message = await said(call('{"path":"a'), piece("/b").slice(0, -1), piece('/c"}'), finish("tool_calls"));
  expect(message).toMatchObject({ ...error("cannot be understood"), content: [] });
});

test.each([
  ["parts", [t("Hi")], [t("Hi")]],
  ["parts with thinking", [{ type: "thinking", thinking: [t("hm")] }, t("Hi")], [{ type: "thinking", text: "hm" }, t("Hi")]],
  ["a part by itself", t("Hi"), [t("Hi")]],
  ["texts in a list", ["H", "i"], [t("Hi")]],
  ["output_text", [{ type: "output_text", text: "Hi" }], [t("Hi")]],
  ["a citation between", [t("H"), { type: "reference", reference_ids: [1] }, t("i")], [t("Hi")]],
  ["a text with null beside it", [{ type: "text", text: "Hi", annotations: null }], [t("Hi")]],
])("K1.2 content as %s is kept", async (_title, content, kept) => {
  expect(await said(text(content), finish("stop"))).toMatchObject(answer(...kept));
  expect(await said({ choices: [{ message: { content } }] }, finish("stop"))).toMatchObject(answer(...kept));
});

test.each([
  ["a number", 5],
  ["an unknown part", [{ type: "hologram", data: "x" }]],
  ["a list in an object", { parts: ["x"] }],
])("K1.2 content as %s is an error, not a loss", async (_title, content) =>
  expect(await said(text("so far"), text(content), finish("stop"))).toMatchObject({ ...error("content"), content: [t("so far")] }),
);

const used = { stop_reason: "function_call", content: [{ type: "function_call", function_id: "f", arguments: { x: 1 } }] };
test.each<[string, object]>([
  ["arguments as an object", call({ x: 1 })],
  ["the older function_call", delta({ function_call: { name: "f", arguments: '{"x":1}' } })],
  ["the older function_call with an object", delta({ function_call: { name: "f", arguments: { x: 1 } } })],
  ["tool_calls as one object", delta({ tool_calls: { id: "a", function: { name: "f", arguments: '{"x":1}' } } })],
  ["a call without the function around it", delta({ tool_calls: [{ id: "a", name: "f", arguments: { x: 1 } }] })],
  [
    "null fields around the call",
    delta({
      content: null,
      role: null,
      refusal: null,
      tool_calls: [{ index: null, id: "a", type: null, function: { name: "f", arguments: '{"x":1}' } }],
    }),
  ],
])("K1.3 %s is used", async (_title, chunk) => expect(await said(chunk, finish("tool_calls"))).toMatchObject(used));

test.each<[string, object, object]>([
  ["without arguments", call(undefined), { content: [{ arguments: {} }] }],
  ["with arguments null", call(null), { content: [{ arguments: {} }] }],
  ["without a name", delta({ tool_calls: [{ index: 0, id: "a", function: { arguments: "{}" } }] }), error("without a name")],
  ["that is a text", delta({ tool_calls: ["f()"] }), error("tool call")],
  [
    "of another type",
    delta({ tool_calls: [{ index: 0, id: "a", type: "custom", custom: { name: "f", input: "x" } }] }),
    error("tool call"),
  ],
])("K1.3 a call %s is used or an error", async (_title, chunk, expected) =>
  expect(await said(chunk, finish("tool_calls"))).toMatchObject(expected),
);

test("K1.3 two calls that share an index without ids are two calls", async () => {
  const two = ["f", "g"].map((name) => delta({ tool_calls: [{ index: 0, function: { name, arguments: '{"x":1}' } }] }));
  expect((await said(...two, finish("tool_calls"))).content).toMatchObject([
    { function_id: "f", arguments: { x: 1 } },
    { function_id: "g", arguments: { x: 1 } },
  ]);
});

test.each(["error", "SAFETY", "insufficient_system_resource", "abort", "content_filter", "network_error", "sensitive", "quux", "toString"])(
  "K1.4 the end word %s is an error that names it, and no call runs",
  async (word) => {
    expect(await said(call("{}"), finish(word))).toMatchObject({ ...error(word), content: [] });
    expect(await said(text("half"), finish(word))).toMatchObject({ ...error(word), content: [t("half")] });
  },
);
test.each([
  ["empty", ""],
  ["null", null],
  ["missing", undefined],
])("K1.4 an end word that is %s is none", async (_title, word) =>
  expect(await said(text("half"), finish(word))).toMatchObject(error("truncated")),
);
test("K1.4 an end word that is no text, or that a better one follows, is not taken for good", async () => {
  expect(await said(text("half"), finish(7))).toMatchObject(error("finish_reason"));
  expect(await said(text("half"), finish("error"), finish("stop"))).toMatchObject(error("error"));
  expect(await said(text("half"), finish(null), finish("stop"))).toMatchObject(answer(t("half")));
});

test.each(["tool_calls", "function_call"])("K1.5 %s without a call is an error", async (word) => {
  const { message, attempts } = await run(sse(finish(word), "[DONE]"));
  expect(message).toMatchObject(error(word));
  expect(attempts).toBe(1);
  expect(await said(text("I will call it."), finish(word))).toMatchObject(error("makes no call"));
});

test.each<[string, object[]]>([
  ["zero tokens", [finish("stop"), { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }]],
  ["null content", [text(null), finish("stop")]],
  ["white space", [text(" \n"), finish("stop")]],
  ["thinking alone", [delta({ reasoning_content: "hm" }), finish("stop")]],
  ["a limit that thinking used up", [delta({ reasoning_content: "hm" }), finish("length")]],
])("K1.6 an answer of %s is an error that says it is empty", async (_title, list) =>
  expect(await said(...list)).toMatchObject(error("empty answer")),
);

describe("K1.7 an error in mid-stream is one", () => {
  test.each<[string, string]>([
    ["plain text", "event: error\ndata: upstream went away\n\n"],
    ["nothing", "event: error\ndata:\n\n"],
    ["an unknown object", 'event: error\ndata: {"reason":"upstream went away"}\n\n'],
    ["an object without a name", 'data: {"message":"upstream went away","code":500}\n\n'],
    ["`detail`", 'data: {"detail":"upstream went away"}\n\n'],
    ["an object that says it", 'data: {"object":"error","message":"upstream went away"}\n\n'],
    ["`error` beside empty choices", 'data: {"choices":[],"error":{"message":"upstream went away"}}\n\n'],
    ["`error` without words", 'data: {"error":{}}\n\n'],
    ["`error: true`", 'data: {"error":true}\n\n'],
    [
      "`error` inside the choice",
      'data: {"choices":[{"index":0,"delta":{"content":""},"error":{"code":502,"message":"upstream went away"}}]}\n\n',
    ],
    ["a field of its own", 'error: {"code":500,"message":"upstream went away"}\n\n'],
    ["a line of text", "upstream went away\n\n"],
    ["an unknown event inside a call", `${sse(call('{"x":'))}event: novelty\ndata: {"x":1}\n\n`],
  ])("as %s", async (_title, noise) => {
    const { message, attempts } = await run(sse(text("half")) + noise + sse(finish("stop"), "[DONE]"));
    expect(message).toMatchObject({ stop_reason: "error", content: [t("half")] });
    expect(message.error_message).not.toBe("");
    expect(attempts).toBe(1);
  });
  test.each([null, "", false])("but `error: %j` beside a good chunk is none", async (none) =>
    expect(await said({ ...text("fine"), error: none }, finish("stop"))).toMatchObject(answer(t("fine"))),
  );
});

test.each<[string, object, object[]]>([
  ["reasoning beside an empty reasoning_content", { reasoning: "hm", reasoning_content: "" }, [{ type: "thinking", text: "hm" }, t("x")]],
  ["reasoning_content beside an empty reasoning", { reasoning: "", reasoning_content: "hm" }, [{ type: "thinking", text: "hm" }, t("x")]],
  ["the same thinking under both names", { reasoning: "hm", reasoning_content: "hm" }, [{ type: "thinking", text: "hm" }, t("x")]],
  ["a refusal beside empty content", { refusal: "no", content: "" }, [t("nox")]],
  ["a refusal beside content", { refusal: "no", content: "but " }, [t("but nox")]],
  ["thinking as parts", { reasoning_content: [{ type: "text", text: "hm" }] }, [{ type: "thinking", text: "hm" }, t("x")]],
  [
    "a summary in the details",
    { reasoning_details: [{ type: "reasoning.summary", summary: "hm" }] },
    [{ type: "thinking", text: "hm" }, t("x")],
  ],
])("K1.8 %s: both are kept", async (_title, part, kept) =>
  expect(await said(delta(part), text("x"), finish("stop"))).toMatchObject(answer(...kept)),
);

const events = [text("a"), text("b"), finish("stop")].map((one) => JSON.stringify(one));
test.each([
  ["one newline between events", events.map((one) => `data: ${one}\n`).join("")],
  ["two values in two data lines", `data: ${events[0]}\ndata: ${events[1]}\n\ndata: ${events[2]}\n\n`],
  ["three values in one line", `data: ${events.join("")}\n\n`],
  ["the closing line behind a value", `data: ${events[0]}\n\ndata: ${events[1]}\n\ndata: ${events[2]}\ndata: [DONE]\n\n`],
  [
    "a value over several data lines",
    `data: ${JSON.stringify(text("ab"), null, 1).replaceAll("\n", "\ndata: ")}\n\ndata: ${events[2]}\n\n`,
  ],
  ["CR alone", events.map((one) => `data:${one}\r\r`).join("")],
  ["a BOM", `\ufeff${events.map((one) => `data: ${one}\n\n`).join("")}`],
  ["lines of JSON", `${events.join("\n")}\n`],
  ["a list of events", `[${events.join(",")}]`],
])("K1.9 %s: all are read", async (_title, body) => expect((await run(body)).message).toMatchObject(answer(t("ab"))));

describe("K1.10", () => {
  const completion = {
    choices: [{ index: 0, message: { role: "assistant", content: "Hi", tool_calls: null }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 1 },
  };
  const type = (value: string) => ({ headers: { "content-type": value } });
  test.each([
    ["a JSON completion", JSON.stringify(completion), "application/json"],
    ["a JSON completion, indented,", `\n ${JSON.stringify(completion, null, 2)}\n`, "application/json; charset=utf-8"],
    ["a JSON completion under text/event-stream", JSON.stringify(completion), "text/event-stream"],
    ["an event stream under application/json", sse(text("Hi"), finish("stop"), "[DONE]"), "application/json"],
    ["an event stream under text/plain", sse(text("Hi"), finish("stop"), "[DONE]"), "text/plain"],
  ])("%s is read", async (_title, body, given) => expect((await run(body, type(given))).message).toMatchObject(answer(t("Hi"))));

  test("a JSON completion with calls is read", async () => {
    const message = {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
        { id: "b", type: "function", function: { name: "f", arguments: "{}" } },
      ],
    };
    const body = JSON.stringify({ choices: [{ message, finish_reason: "tool_calls" }] });
    expect((await run(body, type("application/json"))).message.content).toMatchObject([{ arguments: { x: 1 } }, { arguments: {} }]);
    expect((await run(body.slice(0, -2), type("application/json"))).message).toMatchObject(error("truncated"));
  });

  const page = `<!doctype html><html><head><title>502 Bad Gateway</title><style>b{}</style></head><body><h1>Bad gateway</h1>${"<p>sorry</p>".repeat(5_000)}</body></html>`;
  test.each([
    [200, "permanent", 1],
    [404, "permanent", 1],
    [502, "transient", 4],
  ])("a page of HTML with %i is an error that names both, asked %s", async (status, kind, asked) => {
    const { message, attempts } = await run(page, { status, ...type("text/html; charset=utf-8") });
    expect(message).toMatchObject({ ...error(new RegExp(`^${status} text/html: .*Bad Gateway`)), error_kind: kind });
    expect(Buffer.byteLength(message.error_message ?? "")).toBeLessThanOrEqual(2_200);
    expect(message.error_message).not.toContain("<");
    expect(attempts).toBe(asked);
  });
  test.each([
    ["plain text", "Service unavailable, try later", "text/plain"],
    ["a JSON error", '{"error":{"message":"Service unavailable, try later","type":"invalid_request_error"}}', "application/json"],
  ])("%s with 200 is an error that says so", async (_title, body, given) => {
    const { message, attempts } = await run(body, type(given));
    expect(message).toMatchObject(error(new RegExp(`^200 ${given}: .*Service unavailable`)));
    expect(attempts).toBe(1);
  });
});

test.each<[string, object[], object]>([
  [
    "zeros after counts",
    [
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 4 } },
      { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } },
    ],
    { input: 9, output: 4 },
  ],
  [
    "no cache part in the second report",
    [
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 5 } } },
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 5 } },
    ],
    { input: 4, output: 5, cache_read: 5 },
  ],
  [
    "counts in several places",
    [{ choices: [], x_groq: { usage: { prompt_tokens: 9, completion_tokens: 4 } }, usage: null }],
    { input: 9, output: 4 },
  ],
])("K1.11 %s: the counts stay", async (_title, usage, counted) =>
  expect((await said(text("x"), finish("stop"), ...usage)).usage).toEqual(counted),
);

test.each<[string, object, object]>([
  [
    "OpenAI",
    { prompt_tokens: 2000, completion_tokens: 9, total_tokens: 2009, prompt_tokens_details: { cached_tokens: 1500 } },
    { input: 500, output: 9, cache_read: 1500 },
  ],
  [
    "Gemini",
    { prompt_tokens: 70838, completion_tokens: 9, total_tokens: 70847, prompt_tokens_details: { cached_tokens: 69905 } },
    { input: 933, output: 9, cache_read: 69905 },
  ],
  ["Gemini with thinking", { prompt_tokens: 100, completion_tokens: 9, total_tokens: 159 }, { input: 100, output: 59 }],
  [
    "DeepSeek",
    { prompt_tokens: 20, completion_tokens: 9, prompt_cache_hit_tokens: 12, prompt_cache_miss_tokens: 8 },
    { input: 8, output: 9, cache_read: 12 },
  ],
  ["Kimi", { prompt_tokens: 20, completion_tokens: 9, cached_tokens: 12 }, { input: 8, output: 9, cache_read: 12 }],
  [
    "a gateway that leaves the cache out of the prompt",
    { prompt_tokens: 500, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 1500 } },
    { input: 500, output: 9, cache_read: 1500 },
  ],
  [
    "one whose sum shows it",
    { prompt_tokens: 500, completion_tokens: 9, total_tokens: 909, cache_read_input_tokens: 300, cache_creation_input_tokens: 100 },
    { input: 500, output: 9, cache_read: 300, cache_write: 100 },
  ],
])("case 64 %s: each token is counted once", async (_title, usage, counted) =>
  expect((await said(text("x"), finish("stop"), { choices: [], usage })).usage).toEqual(counted),
);
