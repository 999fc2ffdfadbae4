// A result in the shape of the Model Context Protocol, as content of ours. Pure.
import type { ContentBlock } from "./content.ts";

type Item = Readonly<Record<string, unknown>>;

const record = (value: unknown): Item | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Item) : undefined;
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Items that only this protocol has, or has in this form. */
function isOwn(item: Item): boolean {
  const { type } = item;
  if (type === "resource" || type === "resource_link") return true;
  return (type === "image" || type === "audio") && typeof item["mimeType"] === "string" && typeof item["data"] === "string";
}

function media(type: "image" | "audio", mime: string, data: string): ContentBlock {
  return { type, mime, data };
}

/** The embedded contents of a resource: text as text, an image as an image, other bytes as a line that says what they are. */
function resource(item: Item): ContentBlock {
  const inner = record(item["resource"]) ?? {};
  const [uri, mime, blob] = [text(inner["uri"]), text(inner["mimeType"]), text(inner["blob"])];
  if (typeof inner["text"] === "string") return { type: "text", text: inner["text"] };
  if (mime.startsWith("image/")) return media("image", mime, blob);
  if (mime.startsWith("audio/")) return media("audio", mime, blob);
  return { type: "text", text: `[resource ${uri} ${mime}: ${Math.floor((blob.length * 3) / 4)} bytes]` };
}

function block(item: Item): ContentBlock {
  const { type } = item;
  if (type === "text") return { type: "text", text: text(item["text"]) };
  if (type === "image" || type === "audio") return media(type, text(item["mimeType"] ?? item["mime"]), text(item["data"]));
  if (type === "resource") return resource(item);
  const words = ["title", "name", "description", "uri"].map((key) => text(item[key])).filter((word) => word !== "");
  return { type: "text", text: `[${text(type)} ${words.join(" ")}]` };
}

/** A result of an MCP tool as content; undefined when `value` has another shape. `isError` is what the protocol says with it. */
export function mcpResult(value: unknown): { readonly content: ContentBlock[]; readonly is_error: boolean } | undefined {
  const result = record(value);
  const list = result?.["content"];
  if (result === undefined || !Array.isArray(list)) return undefined;
  const items = list.map(record);
  if (!items.every((item) => item !== undefined && typeof item["type"] === "string")) return undefined;
  const own = items.filter((item) => item !== undefined);
  if (typeof result["isError"] !== "boolean" && !own.some(isOwn)) return undefined;
  return { content: own.map(block), is_error: result["isError"] === true };
}
