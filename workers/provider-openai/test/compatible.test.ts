// Servers that are reached by configuration alone: the examples of the README, and what a config may change in a request.
import { readFileSync } from "node:fs";
import { endpointUrl } from "@iii/provider-kit";
import { requestOf } from "@iii/provider-kit/testing";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { Config } from "../src/config.ts";
import { spec } from "../src/register.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const examples = new Map(
  [...readme.matchAll(/^### (.+)\n+```yaml\n([\s\S]*?)```/gm)].map(([, title = "", yaml = ""]) => [
    title,
    parse(yaml)[0] as { name: string; config: Record<string, unknown> },
  ]),
);
const KEY = "k-0123456789";
const messages = [{ role: "user" as const, content: [{ type: "text" as const, text: "hi" }], timestamp: 1 }];

async function made(config: Readonly<Record<string, unknown>>) {
  const parsed = Config.parse(config);
  const url = endpointUrl(spec.endpoint, parsed, {});
  const credential = parsed.credential === "none" ? {} : { credential: { type: "api_key" as const, key: KEY } };
  return { parsed, ...(await requestOf(spec, { model: "m", messages, thinking_level: "low" }, { config, url, ...credential })) };
}

const bearer = { authorization: `Bearer ${KEY}` };
test.each([
  ["vLLM", "http://127.0.0.1:8000/v1/chat/completions", {}],
  ["Ollama", "http://127.0.0.1:11434/v1/chat/completions", {}],
  ["LM Studio", "http://127.0.0.1:1234/v1/chat/completions", {}],
  ["llama.cpp", "http://127.0.0.1:8080/v1/chat/completions", {}],
  [
    "OpenRouter",
    "https://openrouter.ai/api/v1/chat/completions",
    { ...bearer, "http-referer": "https://example.com", "x-title": "my harness" },
  ],
  ["Mistral", "https://api.mistral.ai/v1/chat/completions", bearer],
  ["DeepSeek", "https://api.deepseek.com/v1/chat/completions", bearer],
  [
    "Azure OpenAI",
    "https://my-resource.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
    { "api-key": KEY },
  ],
  ["Gemini", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", bearer],
  ["Z.ai", "https://api.z.ai/api/paas/v4/chat/completions", bearer],
])("K14.6 the README's example for %s reaches its server", async (title, url, headers) => {
  const example = examples.get(title);
  expect(example?.name).toBe("provider-openai");
  const request = await made(example?.config ?? {});
  expect(request.url).toBe(url);
  expect(request.headers).toEqual(headers);
  expect(request.parsed.models.length).toBeGreaterThan(0);
  expect(request.body["messages"]).toEqual([{ role: "user", content: "hi" }]);
  const limits = ["max_tokens", "max_completion_tokens"].filter((name) => name in request.body);
  expect(limits).toHaveLength(1);
});

test("every example of the README is tried", () => expect(examples.size).toBe(10));

test("K14.7 fields are renamed, left out, also inside messages, and added; headers are added", async () => {
  const { body, headers } = await made({
    rename: { max_completion_tokens: "max_tokens" },
    leave_out: ["stream_options", "reasoning_effort", "messages.role"],
    body: { chat_template_kwargs: { thinking: true }, stream: true },
    headers: { "X-Team": "a" },
  });
  expect(body).toEqual({
    model: "m",
    max_tokens: 8192,
    messages: [{ content: "hi" }],
    stream: true,
    chat_template_kwargs: { thinking: true },
  });
  expect(headers).toMatchObject({ ...bearer, "x-team": "a" });
});

test("K13.2 a password in the address goes in a header and never in the address", async () => {
  const { url, headers } = await made({ api_url: "https://user:s3cret-pass@proxy.example/v1", credential: "none" });
  expect(url).toBe("https://proxy.example/v1/chat/completions");
  expect(headers["authorization"]).toBe(`Basic ${btoa("user:s3cret-pass")}`);
});

test.each([
  [{ api_url: "http://h:1" }, "http://h:1/v1/chat/completions"],
  [{ api_url: "http://h:1/v1/" }, "http://h:1/v1/chat/completions"],
  [{ api_url: "http://h:1/api/v3" }, "http://h:1/api/v3/chat/completions"],
  [{ api_url: "http://h:1/openai/v1/?api-version=preview" }, "http://h:1/openai/v1/chat/completions?api-version=preview"],
  [{ api_url: "http://h:1/v1/chat/completions?key=x" }, "http://h:1/v1/chat/completions?key=x"],
  [{ api_url: "http://h:1/generate", api_path: "" }, "http://h:1/generate"],
  [{ api_url: "http://h:1/base/", api_path: "/chat" }, "http://h:1/base/chat"],
  [{}, "https://api.openai.com/v1/chat/completions"],
])("K14.6 %j leads to %s", (config, url) => expect(endpointUrl(spec.endpoint, Config.parse(config), {})).toBe(url));

test("the environment's base address comes first", () => {
  const config = Config.parse({ api_url: "http://h:1/v1" });
  expect(endpointUrl(spec.endpoint, config, { OPENAI_BASE_URL: "http://other:2/v4" })).toBe("http://other:2/v4/chat/completions");
});
