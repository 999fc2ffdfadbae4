// Function-id patterns: `*` stands for any run of characters, `::` included; everything else is itself, byte for byte.

/** Compiles a pattern into a test of whole ids. Linear in the id for any pattern. */
export function compileGlob(pattern: string): (id: string) => boolean {
  const parts = pattern.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return (id) => id === pattern;
  const last = parts[parts.length - 1] ?? "";
  const middle = parts.slice(1, -1).filter((part) => part !== "");
  return (id) => {
    if (id.length < first.length + last.length || !id.startsWith(first) || !id.endsWith(last)) return false;
    const end = id.length - last.length;
    let at = first.length;
    for (const part of middle) {
      const found = id.indexOf(part, at);
      if (found < 0 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}

const CACHED = 10_000;

/** Any of the patterns; one with `!` in front takes names out again, wherever it stands. Verdicts of the last names are kept. */
export function compileGlobs(patterns: readonly string[]): (name: string) => boolean {
  const listed = patterns.filter((pattern) => !pattern.startsWith("!")).map(compileGlob);
  const spared = patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => compileGlob(pattern.slice(1)));
  const known = new Map<string, boolean>();
  return (name) => {
    const cached = known.get(name);
    if (cached !== undefined) return cached;
    const verdict = listed.some((matches) => matches(name)) && !spared.some((matches) => matches(name));
    if (known.size >= CACHED) known.clear();
    known.set(name, verdict);
    return verdict;
  };
}
