import { expect, test } from "vitest";
import { decodeHTMLStrict } from "../ui/src/stand-ins/entities.ts";

test.each([
  ["names", "a &amp; b &lt;c&gt; &mdash;", "a & b <c> —"],
  ["an unknown name stays", "&nosuch; &constructor;", "&nosuch; &constructor;"],
  ["a reference that is not closed stays", "&amp &#65", "&amp &#65"],
])("%s", (_title, text, expected) => {
  expect(decodeHTMLStrict(text)).toBe(expected);
});
