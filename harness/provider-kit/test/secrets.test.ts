// K13: nothing that a provider reads leaves it with the key it holds, in whatever form, and however it is cut.
import { REDACTED } from "@iii/sdk";
import { expect, test } from "vitest";
import { scrubber } from "../src/answer/scrub.ts";
import { type OpenAiFold, openAi, ProviderSettings, type ProviderSpec } from "../src/index.ts";
import { secretsOf } from "../src/request/shape.ts";
import { bytes, play } from "../src/testing/index.ts";

const spec: ProviderSpec<OpenAiFold, ProviderSettings> = {
  name: "t",
  config: ProviderSettings,
  ...openAi,
  models: [],
  endpoint: { url: "https://t.invalid/v1/chat/completions" },
};
const KEY = 'canary/5f2c"9d7e+1b';
const credential = { type: "api_key" as const, key: KEY };
const FORMS: readonly (readonly [string, string])[] = [
  ["raw", KEY],
  ["base64", btoa(KEY)],
  ["base64 of a login", btoa(`user:${KEY}`)],
  ["url form", encodeURIComponent(KEY)],
  ["JSON-escaped", JSON.stringify(KEY).slice(1, -1)],
];
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const answer = async (...parts: string[]) => await play(spec, [{ chunks: parts.map(bytes) }], { credential });
/** No half of a form that would tell the key. */
const expectClean = (value: unknown, form: string) => {
  const told = JSON.stringify(value);
  for (const secret of [form, JSON.stringify(form).slice(1, -1), KEY, "9d7e"]) expect(told).not.toContain(secret);
};

test.each(FORMS)(
  "K13.1 the key as %s is taken out of text, thinking, arguments and what goes back, cut at any place",
  async (_title, form) => {
    for (let at = 1; at < form.length; at += 1) {
      const [head, tail] = [form.slice(0, at), form.slice(at)];
      const json = JSON.stringify({ a: `x${form}y` });
      const place = json.indexOf(JSON.stringify(form).slice(1, -1)) + at;
      const { message, events } = await answer(
        chunk({ reasoning_content: `t${head}` }) + chunk({ reasoning_content: `${tail}t` }),
        chunk({ content: `see ${head}` }) + chunk({ content: tail }) + chunk({ content: " end" }),
        chunk({ tool_calls: [{ index: 0, id: form, function: { name: "f", arguments: json.slice(0, place) } }] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: json.slice(place) }, extra_content: { s: form } }] }),
        `${chunk({}, "tool_calls")}data: [DONE]\n\n`,
      );
      expect(message.stop_reason).toBe("function_call");
      expect(message.content.map((block) => block.type)).toEqual(["thinking", "text", "function_call"]);
      expect(JSON.stringify(message)).toContain(REDACTED);
      expectClean([message, events], form);
    }
  },
);

test.each(FORMS)("K13.1 the key as %s is taken out of errors of every kind", async (_title, form) => {
  const replies = [
    { status: 401, chunks: [bytes(`no: ${form}`)] },
    { status: 400, chunks: [bytes(JSON.stringify({ error: { message: `no: ${form}` } }))] },
    { chunks: [bytes(`data: ${JSON.stringify({ error: { message: form } })}\n\n`)] },
    { chunks: [bytes(`data: {"novelty":${JSON.stringify(form)}}\n\n`)] },
    { chunks: [bytes(`data: not json ${form}\n\n`)] },
    { chunks: [bytes(chunk({ content: "x" }) + chunk({}, form))] },
    { chunks: [bytes(`<html>${form}</html>`)] },
    { chunks: [], lost: `lost ${form}` },
  ];
  for (const reply of replies) {
    const played = await play(spec, [reply], { credential, config: { max_retries: 0 } });
    expect(played.message.stop_reason).toBe("error");
    expectClean([played.message, played.events], form);
  }
});

test("K13.1 a placeholder that local servers want as a key stays an ordinary word", () => {
  expect(scrubber(["ollama"]).text("ask ollama")).toBe("ask ollama");
});

test("K13.2 the address's password, secret headers and secret query values count as keys", () => {
  const config = ProviderSettings.parse({
    headers: { "X-Api-Key": "header-secret", "X-Title": "my harness", Authorization: "Bearer bearer-secret" },
  });
  expect(secretsOf("https://u:p%40ssword@h/v1?key=query-secret&api-version=1", config, credential)).toEqual([
    KEY,
    "p@ssword",
    "query-secret",
    "header-secret",
    "bearer-secret",
  ]);
});

test("K13.1 what is held back for a secret that does not come is told after all", async () => {
  const { message } = await answer(chunk({ content: "can" }) + chunk({ content: "ary/" }) + chunk({}, "stop"));
  expect(message.content).toEqual([{ type: "text", text: "canary/" }]);
});
