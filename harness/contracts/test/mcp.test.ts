// Results in the shape of the Model Context Protocol.
import { expect, test } from "vitest";
import { mcpResult } from "../src/mcp.ts";

const items = [
  { type: "text", text: "see" },
  { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
  { type: "audio", data: "UklGRg==", mimeType: "audio/wav" },
  { type: "resource", resource: { uri: "file:///a.md", mimeType: "text/markdown", text: "# A" } },
  { type: "resource", resource: { uri: "file:///a.bin", mimeType: "application/zip", blob: "AAAA" } },
  { type: "resource_link", uri: "file:///b.md", name: "b" },
  { type: "novelty", data: "AAAA" },
];

test("K14.8 an MCP-shaped result becomes content, and its isError counts", () => {
  expect(mcpResult({ content: items, isError: true })).toEqual({
    is_error: true,
    content: [
      { type: "text", text: "see" },
      { type: "image", mime: "image/png", data: "iVBORw0KGgo=" },
      { type: "audio", mime: "audio/wav", data: "UklGRg==" },
      { type: "text", text: "# A" },
      { type: "text", text: "[resource file:///a.bin application/zip: 3 bytes]" },
      { type: "text", text: "[resource_link b file:///b.md]" },
      { type: "text", text: "[novelty ]" },
    ],
  });
});

test.each([
  ["an image without isError", { content: [items[1]] }, true],
  ["text with isError false", { content: [items[0]], isError: false }, true],
  ["a function result of ours", { content: [items[0]], details: {} }, false],
  ["an image of ours", { content: [{ type: "image", mime: "image/png", data: "AA" }] }, false],
  ["items without a type", { content: [{ a: 1 }], isError: true }, false],
  ["a list", [items], false],
  ["null", null, false],
])("%s is one: %s", (_title, value, is) => expect(mcpResult(value) !== undefined).toBe(is));
