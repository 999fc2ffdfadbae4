// What a vendor refuses is replaced when it is sent, so that an old session heals by itself.
import type { AgentMessage, AssistantMessage, ContentBlock } from "@iii/contracts";
import { GenerateRequest } from "@iii/contracts";
import { describe, expect, test } from "vitest";
import { heal, type Server } from "../src/request/doctor.ts";
import { COMMON_IMAGES } from "../src/request/media.ts";

const server: Server = {
  provider: "openai",
  url: "https://user:pw@api.deepseek.com/v1/chat/completions?key=1",
  takes: { images: COMMON_IMAGES, max_image_bytes: 1_000, images_in_results: true, signed_only: () => false },
  vision: true,
};
const user = (...content: ContentBlock[]): AgentMessage => ({ role: "user", content, timestamp: 1 });
const t = (text: string): ContentBlock => ({ type: "text", text });
const image = (mime: string, data = "AAAA"): ContentBlock => ({ type: "image", mime, data });
const assistant = (content: ContentBlock[], more: Partial<AssistantMessage> = {}): AgentMessage => ({
  role: "assistant",
  content,
  stop_reason: "function_call",
  model: "m",
  provider: "openai",
  timestamp: 2,
  ...more,
});
const call = (id = "a", more: object = {}): ContentBlock => ({ type: "function_call", id, function_id: "f", arguments: {}, ...more });
const result = (content: ContentBlock[], details: unknown = null, id = "a"): AgentMessage => ({
  role: "function_result",
  function_call_id: id,
  function_id: "f",
  content,
  details,
  is_error: false,
  timestamp: 3,
});
const turns = (messages: AgentMessage[], at: Partial<Server> = {}) =>
  heal(GenerateRequest.parse({ model: "m", messages }), { ...server, ...at }).request.turns;
const shown = (block: ContentBlock, at: Partial<Server> = {}) => turns([user(block)], at)[0]?.content;

describe("K2.5", () => {
  test.each([
    ["image/jpg", "AAAA", "image/jpeg"],
    ["image/pjpeg", "AAAA", "image/jpeg"],
    ["IMAGE/PNG; x=1", "AAAA", "image/png"],
    ["image/jpeg", "iVBORw0KGgoAAAA=", "image/png"],
    ["image/png", "/9j/AAAA", "image/jpeg"],
  ])("K2.5 an image called %s is put right", (mime, data, right) => expect(shown(image(mime, data))).toEqual([image(right, data)]));

  test("data as an address, in lines or in the URL alphabet is plain base64 when it is sent", () => {
    expect(shown(image("", "data:image/png;base64,AA\nAA"))).toEqual([image("image/png", "AAAA")]);
    expect(shown(image("image/png", "A_-A"))).toEqual([image("image/png", "A/+A")]);
  });

  test.each<[string, ContentBlock]>([
    ["svg", image("image/svg+xml", "PHN2Zz4=")],
    ["svg called png", image("image/png", "PHN2Zz4=")],
    ["pdf", image("application/pdf", "JVBERi0=")],
    ["heic", image("image/heic")],
    ["no data", image("image/png", "")],
    ["no base64", image("image/png", "<html>")],
    ["too large", image("image/png", "A".repeat(2_000))],
    ["no mime", image("")],
    ["sound", { type: "audio", mime: "audio/wav", data: "UklGRg==" }],
    ["sound called an image", image("audio/mpeg")],
  ])("K2.5 an image that is %s is replaced by a text that says what it was", (_title, block) => {
    const [only] = shown(block) ?? [];
    expect(only).toMatchObject({ type: "text", text: expect.stringMatching(/^\[(image|audio) .*: not sent, /) });
    expect(JSON.stringify(only)).not.toContain("base64,");
  });

  test("K2.5 a model without eyes gets a text for each image", () => {
    expect(shown(image("image/png"), { vision: false })).toMatchObject([
      { text: "[image image/png, 3 bytes: not sent, this model takes no images]" },
    ]);
  });

  test("K14.9 empty texts are left out, an empty message and an empty result say so", () => {
    expect(turns([user(t(""), t("x"), t(" \n"))])).toEqual([{ role: "user", content: [t("x")] }]);
    expect(turns([user()])).toEqual([{ role: "user", content: [t("(empty message)")] }]);
    const [, answered] = turns([user(t("x")), assistant([t(""), call()]), result([t("")])]);
    expect(answered).toMatchObject({ content: [call()], results: [{ content: [t("(no output)")] }] });
  });

  test("two messages of one role in a row become one", () => {
    expect(
      turns([
        user(t("a")),
        user(t("b")),
        assistant([t("c")]),
        assistant([], { stop_reason: "aborted" }),
        assistant([t("d")]),
        user(t("e")),
      ]),
    ).toMatchObject([
      { role: "user", content: [t("a"), t("b")] },
      { role: "assistant", content: [t("c"), t("d")] },
      { role: "user", content: [t("e")] },
    ]);
  });

  test("images in results follow as the user's, before what the user says, where results take none", () => {
    const at = { takes: { ...server.takes, images_in_results: false } };
    expect(turns([user(t("x")), assistant([call()]), result([image("image/png")]), user(t("y"))], at)).toMatchObject([
      { role: "user" },
      { role: "assistant", results: [{ content: [t("(the image follows)")] }] },
      { role: "user", content: [image("image/png"), t("y")] },
    ]);
  });

  test("each repair is named, nothing is repaired twice, and the messages stay as they were", () => {
    const messages = [user(image("image/jpg"), image("image/heic"))];
    const before = JSON.stringify(messages);
    expect(heal(GenerateRequest.parse({ model: "m", messages }), server).repairs).toEqual([
      "image image/jpg put right",
      "image image/heic replaced by a text",
    ]);
    expect(JSON.stringify(messages)).toBe(before);
  });
});

describe("K14", () => {
  const mcp = {
    content: [
      { type: "text", text: "see" },
      { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
    ],
    isError: true,
  };
  test.each([
    ["in its details", mcp],
    ["in its text alone", null],
  ])("K14.8 an MCP-shaped result that was stored whole, %s, is read: its image as an image, its error as one", (_title, details) => {
    const [, answered] = turns([user(t("x")), assistant([call()]), result([t(JSON.stringify(mcp))], details)]);
    expect(answered).toMatchObject({ results: [{ is_error: true, content: [t("see"), image("image/png", "iVBORw0KGgo=")] }] });
    const [, blind] = turns([user(t("x")), assistant([call()]), result([t(JSON.stringify(mcp))], details)], { vision: false });
    expect(JSON.stringify(blind && "results" in blind ? blind.results[0]?.content : "")).not.toContain("iVBORw0KGgo");
  });
});

describe("K2.6", () => {
  const thought: ContentBlock = { type: "thinking", text: "hm" };
  const from = (origin: string) => ({ vendor: { origin, reasoning: "reasoning_content", fields: { extra_content: { a: 1 } } } });
  const talk = (more: Partial<AssistantMessage>) => [
    user(t("x")),
    assistant([thought, call("a", { extra: { sig: 1 } })], more),
    result([t("r")]),
  ];

  test("thinking and what else is the vendor's goes back to the server that sent it", () => {
    const [, own] = turns(talk(from("https://api.deepseek.com")));
    expect(own).toMatchObject({ content: [thought, { extra: { sig: 1 } }], message: from("https://api.deepseek.com") });
  });

  test.each<[string, Partial<AssistantMessage>]>([
    ["another server of this provider", from("https://api.openai.com")],
    ["another provider", { ...from("https://api.deepseek.com"), provider: "kimi" }],
    ["a server that was not noted, unsigned", {}],
  ])("nothing goes back of %s", (_title, more) => {
    const [, other] = turns(talk(more));
    expect(other?.content.map((block) => block.type)).toEqual(["function_call"]);
    if (more.vendor !== undefined)
      expect(JSON.stringify([other?.content, other?.role === "assistant" && other.message.vendor])).not.toMatch(
        /extra_content|sig|reasoning_content/,
      );
  });
});

test("pairing 8,000 messages takes no time that grows with its square", () => {
  const messages = Array.from({ length: 4_000 }, (_, n) => [assistant([call(`c${n}`)]), result([t("r")], null, `c${n}`)]).flat();
  const started = performance.now();
  expect(turns([user(t("x")), ...messages])).toHaveLength(4_001);
  expect(performance.now() - started).toBeLessThan(1_500);
});
