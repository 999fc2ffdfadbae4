// What servers send that was once taken for good, or lost: row by row on Anthropic's wire.
import { bytes, play, type Reply } from "@iii/provider-kit/testing";
import { expect, test } from "vitest";
import { spec } from "../src/register.ts";

const sse = (...list: object[]) => list.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("");
const run = async (body: string, reply: Reply = {}) =>
  (await play(spec, [{ ...reply, chunks: [bytes(body)] }], { config: { max_retries: 0 } })).message;
const said = (...list: object[]) => run(sse(begin, ...list));
const error = (says: string) => ({ stop_reason: "error", error_message: expect.stringContaining(says) });
const t = (value: string) => ({ type: "text", text: value });

const begin = { type: "message_start", message: { usage: { input_tokens: 9, output_tokens: 1 } } };
const open = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
const delta = (index: number, part: object) => ({ type: "content_block_delta", index, delta: part });
const close = (index: number) => ({ type: "content_block_stop", index });
const text = [open(0, { type: "text", text: "" }), delta(0, { type: "text_delta", text: "so far" }), close(0)];
const tool = (more: object = {}) => open(1, { type: "tool_use", id: "a", name: "f", ...more });
const json = (partial_json: string) => delta(1, { type: "input_json_delta", partial_json });
const end = (stop_reason: unknown, usage: object = { output_tokens: 5 }) => [
  { type: "message_delta", delta: { stop_reason }, usage },
  { type: "message_stop" },
];

test.each<[string, object[], object]>([
  ["without input", [tool(), close(1)], {}],
  ["without input, with deltas", [tool(), json('{"x":1}'), close(1)], { x: 1 }],
  ["with input null", [tool({ input: null }), json('{"x":1}'), close(1)], { x: 1 }],
  ["with its whole input at the start", [tool({ input: { x: 1 } }), close(1)], { x: 1 }],
  ["with its input as text", [tool({ input: '{"x":1}' }), close(1)], { x: 1 }],
])("K1.3 a tool_use %s is used", async (_title, list, args) =>
  expect(await said(...list, ...end("tool_use"))).toMatchObject({
    stop_reason: "function_call",
    content: [{ id: "a", function_id: "f", arguments: args }],
  }),
);

test.each<[string, object[], string]>([
  ["without its start", [json('{"x":1}'), close(1)], "without a name"],
  ["without its end", [tool(), json('{"x":1}')], "never finished"],
  ["started twice", [tool(), tool(), json('{"x":1}'), close(1)], "started twice"],
  ["that gets text", [tool(), delta(1, { type: "text_delta", text: "x" }), close(1)], "text for block 1"],
  ["that goes on after its end", [tool(), json("{}"), close(1), json("{}")], "is over"],
  ["without a name", [open(1, { type: "tool_use", id: "a", input: {} }), close(1)], "without a name"],
  ["whose delta has another type", [tool(), delta(1, { type: "novelty", partial_json: "{}" }), close(1)], "cannot be understood"],
  ["in a second message", [begin, tool(), json("{}"), close(1)], "second answer"],
])("K1.1 a call %s is an error and does not run", async (_title, list, says) =>
  expect(await said(...text, ...list, ...end("tool_use"))).toMatchObject({ ...error(says), content: [t("so far")] }),
);

test.each(["guardrail_intervened", "refusal", "model_context_window_exceeded", "quux", "constructor"])(
  "K1.4 the end word %s is an error that names it, and no call runs",
  async (word) => expect(await said(tool(), json("{}"), close(1), ...end(word))).toMatchObject({ ...error(word), content: [] }),
);
test.each([
  ["empty", ""],
  ["null", null],
  ["missing", undefined],
])("K1.4 an end word that is %s is none", async (_title, word) =>
  expect(await said(...text, ...end(word))).toMatchObject(error("truncated")),
);

test("K1.5 K1.6 tool_use without a tool, and an end without a word, are errors", async () => {
  expect(await said(...text, ...end("tool_use"))).toMatchObject(error("makes no call"));
  expect(await said(...end("end_turn", { output_tokens: 0 }))).toMatchObject(error("empty answer"));
  expect(await said(open(0, { type: "thinking", thinking: "hm" }), close(0), ...end("end_turn"))).toMatchObject(error("empty answer"));
});

test.each([
  ["plain text", "event: error\ndata: boom\n\n"],
  ["an unknown object", 'event: error\ndata: {"why":"boom"}\n\n'],
  ["its type alone", 'data: {"type":"error"}\n\n'],
  ["`error` as text", 'data: {"error":"boom"}\n\n'],
  ["an unknown type", 'data: {"type":"boom"}\n\n'],
  ["no object", "data: 5\n\n"],
])("K1.7 an error in mid-stream as %s is one, and the text stays", async (_title, noise) =>
  expect(await run(sse(begin, ...text) + noise + sse(...end("end_turn")))).toMatchObject({ stop_reason: "error", content: [t("so far")] }),
);

test("K1.9 the type of an event may stand in its name alone", async () => {
  const body = [begin, ...text, ...end("end_turn")]
    .map(({ type, ...rest }) => `event: ${type}\ndata: ${JSON.stringify(rest)}\n\n`)
    .join("");
  expect(await run(body)).toMatchObject({ stop_reason: "end", content: [t("so far")] });
});

test("K1.10 a JSON message in place of a stream is read, a page of HTML is an error", async () => {
  const content = [
    { type: "thinking", thinking: "hm", signature: "s" },
    { type: "text", text: "so far" },
    { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
  ];
  const body = JSON.stringify({
    type: "message",
    role: "assistant",
    content,
    stop_reason: "tool_use",
    usage: { input_tokens: 9, output_tokens: 5 },
  });
  const headers = { "content-type": "application/json" };
  expect(await run(body, { headers })).toMatchObject({
    stop_reason: "function_call",
    content: [{ text: "hm" }, t("so far"), { arguments: { x: 1 } }],
    usage: { input: 9, output: 5 },
  });
  expect(await run(body.replace('"tool_use","usage', '"","usage'), { headers })).toMatchObject({ stop_reason: "error" });
  expect(await run("<html><body>Log in</body></html>", { headers: { "content-type": "text/html" } })).toMatchObject(
    error("200 text/html: not an answer: Log in"),
  );
});

test("K1.11 zero counts after right ones, and counts that come at the end only", async () => {
  const usage = { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0 };
  const before = { type: "message_start", message: { usage: { input_tokens: 9, cache_read_input_tokens: 4 } } };
  const late = { type: "message_delta", delta: {}, usage: { output_tokens: 5 } };
  expect((await run(sse(before, ...text, late, ...end("end_turn", usage)))).usage).toEqual({ input: 9, cache_read: 4, output: 5 });
  const zeros = { type: "message_start", message: { usage: { input_tokens: 0, output_tokens: 0 } } };
  expect((await run(sse(zeros, ...text, ...end("end_turn", { input_tokens: 9, output_tokens: 5 })))).usage).toEqual({
    input: 9,
    output: 5,
  });
});

test("K3.4 an answer whose end tells no count is counted here and marked, never by the number from before it was written", async () => {
  const { usage } = await run(sse(begin, ...text, ...end("end_turn", {})));
  expect(usage).toEqual({ input: 9, output: 2, estimated: true });
});

test("case 64 native counts leave the cache out of the input", async () => {
  const before = {
    type: "message_start",
    message: { usage: { input_tokens: 500, cache_read_input_tokens: 1500, cache_creation_input_tokens: 300, output_tokens: 1 } },
  };
  expect((await run(sse(before, ...text, ...end("end_turn")))).usage).toEqual({
    input: 500,
    output: 5,
    cache_read: 1500,
    cache_write: 300,
  });
});

test("what ran at the vendor is skipped with all that belongs to it", async () => {
  const list = [
    open(1, { type: "server_tool_use", id: "s", name: "web_search", input: {} }),
    json('{"q":1}'),
    close(1),
    open(2, { type: "web_search_tool_result", content: [] }),
    close(2),
  ];
  expect(await said(...list, ...text, ...end("end_turn"))).toMatchObject({ stop_reason: "end", content: [t("so far")] });
});
