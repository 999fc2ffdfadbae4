// The JSON values in the data of one event. Servers send one; some put several in a row, or the closing line behind them.

export type Piece = { readonly value: unknown } | "closing";

/** The line by which streams of this family say that nothing follows. */
const CLOSING = "[DONE]";

function parse(text: string): Piece | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Strings, and what opens and closes. */
const TOKEN = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"|[{}[\]]/g;

/** The end of the object or array that starts at `from`; the end of the text when it has none. */
function endOf(text: string, from: number): number {
  let depth = 0;
  TOKEN.lastIndex = from;
  for (let token = TOKEN.exec(text); token !== null; token = TOKEN.exec(text)) {
    if (token[0] === "{" || token[0] === "[") depth += 1;
    else if (token[0] === "}" || token[0] === "]") depth -= 1;
    if (depth <= 0) return TOKEN.lastIndex;
  }
  return text.length;
}

/** White space, and field names that some servers write twice. */
const BETWEEN = /(?:\s|data:)*/y;

/** The piece that starts at `at`, and where it ends. */
function pieceAt(text: string, at: number): { readonly piece: Piece; readonly end: number } | undefined {
  if (text.startsWith(CLOSING, at)) return { piece: "closing", end: at + CLOSING.length };
  const end = endOf(text, at);
  const piece = parse(text.slice(at, end));
  return piece === undefined ? undefined : { piece, end };
}

/** A list is what it lists: some servers collect their events in one. */
const listed = (piece: Piece): Piece[] =>
  piece !== "closing" && Array.isArray(piece.value) ? piece.value.map((value: unknown) => ({ value })) : [piece];

/** All values of `text`, in order; undefined when any part of it is none. */
export function jsonPieces(text: string): Piece[] | undefined {
  const whole = parse(text);
  if (whole !== undefined) return listed(whole);
  const pieces: Piece[] = [];
  for (let at = 0; ; ) {
    BETWEEN.lastIndex = at;
    at += BETWEEN.exec(text)?.[0].length ?? 0;
    if (at >= text.length) return pieces;
    const next = pieceAt(text, at);
    if (next === undefined) return undefined;
    pieces.push(...listed(next.piece));
    at = next.end;
  }
}
