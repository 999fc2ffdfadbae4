// Text from models, tools and people made safe to look at: nothing in it is invisible, moves a cursor or turns the reading direction.

/**
 * Control characters (but newline and tab), bidirectional overrides, invisible joiners and marks, lone surrogates. Emoji keep what
 * joins and colours them.
 */
const HIDDEN =
  /(?![\t\n])(?!(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?)(?:\u200d|\ufe0f))[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Splits text into plain parts and hidden characters, the latter as visible escapes. Joined, the parts show everything that is there. */
export function visible(text: string): readonly { readonly text: string; readonly hidden: boolean }[] {
  const parts: { text: string; hidden: boolean }[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) parts.push({ text: text.slice(from, match.index), hidden: false });
    parts.push({ text: escaped(match[0]), hidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), hidden: false });
  return parts;
}

function escaped(char: string): string {
  return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
}

/** The text with every hidden character as its escape, for a terminal. */
export function plain(text: string): string {
  return visible(text)
    .map((part) => part.text)
    .join("");
}

/** The value as JSON in which every hidden character is escaped: the same document, and safe in a terminal. */
export function plainJson(value: unknown): string {
  const units = (hidden: string) => hidden.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return (JSON.stringify(value) ?? "null").replace(HIDDEN, (hidden) => units(hidden).join(""));
}
