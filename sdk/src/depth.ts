// How deep JSON may nest, everywhere: heads, values, arguments, bodies. Works in browsers.

/** Containers inside each other, the outermost included: `[[1]]` is 2 deep. Deeper values are refused with `payload_too_deep`. */
export const MAX_DEPTH = 512;

/** Whether a JSON-like value nests deeper than `limit` containers. Never recurses; a cycle counts as too deep. */
export function isTooDeep(value: unknown, limit = MAX_DEPTH): boolean {
  if (typeof value !== "object" || value === null) return false;
  const open: { readonly value: object; readonly depth: number }[] = [{ value, depth: 1 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.depth > limit) return true;
    for (const item of Object.values(next.value)) {
      if (typeof item === "object" && item !== null) open.push({ value: item, depth: next.depth + 1 });
    }
  }
  return false;
}
