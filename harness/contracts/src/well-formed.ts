// Keeps text valid Unicode: half of a surrogate pair makes vendors refuse a conversation for good, and other languages' parsers too.

/** The value with every string, keys included, made well-formed. */
export function wellFormed<T>(value: T): T {
  return repaired(value) as T;
}

function repaired(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(repaired);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), repaired(item)]));
}
