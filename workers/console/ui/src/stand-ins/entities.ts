// Stands in for markdown-it's table of all 2,231 character names: those that people and models write.
// Others stay as typed.
const NAMES: Readonly<Record<string, number>> = {
  amp: 38,
  lt: 60,
  gt: 62,
  quot: 34,
  apos: 39,
  nbsp: 160,
  copy: 169,
  reg: 174,
  trade: 8482,
  deg: 176,
  plusmn: 177,
  times: 215,
  divide: 247,
  middot: 183,
  bull: 8226,
  hellip: 8230,
  ndash: 8211,
  mdash: 8212,
  lsquo: 8216,
  rsquo: 8217,
  ldquo: 8220,
  rdquo: 8221,
  laquo: 171,
  raquo: 187,
  larr: 8592,
  rarr: 8594,
  uarr: 8593,
  darr: 8595,
  euro: 8364,
  pound: 163,
  yen: 165,
  cent: 162,
  sect: 167,
  para: 182,
  le: 8804,
  ge: 8805,
  ne: 8800,
  infin: 8734,
  check: 10003,
};

/** Decodes the named references in a text; markdown-it decodes the numbered ones. A name that is not known stays as it is. */
export function decodeHTMLStrict(text: string): string {
  return text.replace(/&([a-z]{2,8});/g, (whole, name: string) => {
    return Object.hasOwn(NAMES, name) ? String.fromCodePoint(NAMES[name] ?? 0xfffd) : whole;
  });
}
