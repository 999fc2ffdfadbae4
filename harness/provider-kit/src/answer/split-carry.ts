// Deltas may cut a character in two: what waits for its other half.

/** Splits off a trailing high surrogate: its other half may come with the next delta. */
export function splitCarry(text: string): readonly [whole: string, carry: string] {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? [text.slice(0, -1), text.slice(-1)] : [text, ""];
}
