// Equality of messages as they are stored: JSON values, where a key that is undefined is not there.

/** Structural equality; key order does not matter. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = presentEntries(a);
  const right = new Map(presentEntries(b));
  return left.length === right.size && left.every(([key, value]) => right.has(key) && deepEqual(value, right.get(key)));
}

function presentEntries(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, item]) => item !== undefined);
}
