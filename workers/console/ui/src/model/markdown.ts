// Markdown from models, as virtual nodes through an allowlist. No HTML string exists on the way, so there is nothing to sanitize.
import MarkdownIt, { type Token } from "markdown-it";
import { type ComponentChild, h } from "preact";

const TAGS: ReadonlySet<string> = new Set(
  "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s a hr br table thead tbody tr th td".split(" "),
);
const SCHEMES: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);

const parser = new MarkdownIt({ html: false, linkify: false });
parser.disable("image");
// Links are judged by `href` below, once, on what would be shown.
parser.validateLink = () => true;

/** Renders a whole text. */
export function markdown(text: string): ComponentChild[] {
  return nodes(parser.parse(text, {}));
}

interface Frame {
  readonly tag: string | undefined;
  readonly props: Record<string, unknown>;
  readonly children: ComponentChild[];
}

function nodes(tokens: readonly Token[]): ComponentChild[] {
  const stack: Frame[] = [{ tag: undefined, props: {}, children: [] }];
  for (const token of tokens) {
    if (token.nesting === 1) stack.push({ tag: allowed(token), props: propsOf(token), children: [] });
    else if (token.nesting === -1) pop(stack);
    else if (token.type === "text" && !stack.some((frame) => frame.tag === "a")) top(stack).children.push(...linked(token.content));
    else top(stack).children.push(...leaf(token));
  }
  while (stack.length > 1) pop(stack);
  return top(stack).children;
}

function pop(stack: Frame[]): void {
  const closed = stack.length > 1 ? stack.pop() : undefined;
  if (closed !== undefined) top(stack).children.push(...close(closed));
}

function top(stack: readonly Frame[]): Frame {
  return stack[stack.length - 1] ?? { tag: undefined, props: {}, children: [] };
}

function allowed(token: Token): string | undefined {
  if (token.hidden || !TAGS.has(token.tag)) return undefined;
  if (token.tag === "a" && href(String(token.attrGet("href") ?? "")) === undefined) return undefined;
  return token.tag;
}

/** A tag that is not allowed leaves its content. */
function close(frame: Frame): ComponentChild[] {
  if (frame.tag === undefined) return frame.children;
  const node = h(frame.tag, frame.props, ...frame.children);
  return [frame.tag === "table" ? h("div", { class: "md-table", tabIndex: 0, role: "group", "aria-label": "Table" }, node) : node];
}

function leaf(token: Token): ComponentChild[] {
  switch (token.type) {
    case "inline":
      return nodes(token.children ?? []);
    case "fence":
    case "code_block":
      return [code(token)];
    case "code_inline":
      return [h("code", null, token.content)];
    case "softbreak":
      return ["\n"];
    case "hardbreak":
      return [h("br", null)];
    case "hr":
      return [h("hr", null)];
    default:
      return token.content === "" ? [] : [token.content];
  }
}

/** A text with its plain web addresses as links; punctuation at the end of one belongs to the sentence. */
function linked(text: string): ComponentChild[] {
  const parts: ComponentChild[] = [];
  let from = 0;
  for (const match of text.matchAll(/\bhttps?:\/\/(?:\([^\s<>"'`()]*\)|[^\s<>"'`()])+/gi)) {
    const address = match[0].replace(/[.,;:!?]+$/, "");
    const props = linkProps(address);
    if (props === undefined) continue;
    parts.push(text.slice(from, match.index), h("a", props, address));
    from = match.index + address.length;
  }
  parts.push(text.slice(from));
  return parts.filter((part) => part !== "");
}

function linkProps(raw: string): Record<string, unknown> | undefined {
  const url = href(raw);
  return url === undefined
    ? undefined
    : { href: url.href, title: url.host || url.href, target: "_blank", rel: "noopener noreferrer nofollow" };
}

function code(token: Token): ComponentChild {
  const language = /^[\w+#.-]{1,24}/.exec(token.info.trim())?.[0];
  return h("pre", { tabIndex: 0, ...(language === undefined ? {} : { "data-language": language }) }, h("code", null, token.content));
}

function propsOf(token: Token): Record<string, unknown> {
  if (token.tag === "a") return linkProps(String(token.attrGet("href") ?? "")) ?? {};
  if (token.tag === "ol") return startOf(token.attrGet("start"));
  if (token.tag === "th" || token.tag === "td") return alignOf(String(token.attrGet("style") ?? ""));
  return {};
}

function startOf(start: unknown): Record<string, unknown> {
  const first = Number(start ?? 1);
  return Number.isSafeInteger(first) && first !== 1 ? { start: first } : {};
}

function alignOf(style: string): Record<string, unknown> {
  const align = /text-align:(left|right|center)/.exec(style)?.[1];
  return align === undefined ? {} : { class: `align-${align}` };
}

/** A link that may be followed: absolute, of a known scheme, without credentials. Everything else stays text. */
function href(raw: string): URL | undefined {
  if (!/^(https?:\/\/[^\\/]|mailto:)/i.test(raw)) return undefined;
  const url = URL.parse(raw);
  return url !== null && SCHEMES.has(url.protocol) && url.username === "" ? url : undefined;
}

/** Cuts a growing text into blocks that no longer change and a tail that does, so that each delta parses only the tail. */
export function splitStable(text: string): { readonly done: readonly string[]; readonly tail: string } {
  const done: string[] = [];
  const lines = text.split("\n");
  let fence: string | undefined;
  let from = 0;
  for (const [index, line] of lines.entries()) {
    fence = fenceAfter(fence, line);
    if (fence !== undefined || line.trim() !== "" || !/^\S/.test(lines[index + 1] ?? "")) continue;
    done.push(lines.slice(from, index + 1).join("\n"));
    from = index + 1;
  }
  return { done, tail: lines.slice(from).join("\n") };
}

/** The code fence that is open after this line. */
function fenceAfter(open: string | undefined, line: string): string | undefined {
  const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
  if (mark === undefined) return open;
  if (open === undefined) return mark;
  return mark.startsWith(open) ? undefined : open;
}
