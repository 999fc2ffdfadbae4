import { expect, test } from "vitest";
import { plain, plainJson, visible } from "../src/visible.ts";

const shown = (text: string) =>
  visible(text)
    .map((part) => (part.hidden ? `[${part.text}]` : part.text))
    .join("");

test.each([
  ["plain text with a newline and a tab", "a\n\tb", "a\n\tb"],
  ["a bidirectional override", "rm \u202e/ fr-", "rm [\\u{202e}]/ fr-"],
  ["a zero-width space", "a\u200bb", "a[\\u{200b}]b"],
  ["an escape sequence", "\u001b[31mred", "[\\u{1b}][31mred"],
  ["a carriage return, which could hide what stands before it", "evil\rgood", "evil[\\u{d}]good"],
  ["a lone surrogate", "x\ud800y", "x[\\u{d800}]y"],
  ["tag characters", "a\u{e0041}", "a[\\u{e0041}]"],
  ["letters of any script, and emoji, joined or not", "žluťoučký 東京 🎉 ❤️ 🏳️‍🌈 👩🏽‍🚀", "žluťoučký 東京 🎉 ❤️ 🏳️‍🌈 👩🏽‍🚀"],
  ["a joiner without an emoji", "a\u200db", "a[\\u{200d}]b"],
])("what would be invisible is shown: %s", (_title, text, expected) => {
  expect(shown(text)).toBe(expected);
});

test("K12.2 a terminal shows hidden characters as the page does, and JSON stays the same document", () => {
  const nasty = { path: "rm \u202e/ fr-", also: "a\u200bb\u2066\u{e0041}\u009b31m\u007f", "key\ufeff": "é 東京 🏳️‍🌈" };
  expect(plain(nasty.path)).toBe("rm \\u{202e}/ fr-");
  const text = plainJson(nasty);
  expect(visible(text).some((part) => part.hidden)).toBe(false);
  expect(JSON.parse(text)).toEqual(nasty);
  expect(plainJson(undefined)).toBe("null");
});
