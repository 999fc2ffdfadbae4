// Keeps text valid Unicode: half of a surrogate pair makes vendors refuse a request for good.

/** The value with every string, keys included, made well-formed. Shares what needs no change. */
export function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.isWellFormed() ? value : value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), wellFormed(item)]));
}

/** Splits off a trailing high surrogate: its other half may come with the next delta. */
export function splitCarry(text: string): readonly [whole: string, carry: string] {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? [text.slice(0, -1), text.slice(-1)] : [text, ""];
}
