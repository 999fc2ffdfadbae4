// The name that was probably meant.

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The candidate nearest to `word`, when one is near enough to be a slip of the hand. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: { name: string; steps: number } | undefined;
  for (const name of candidates) {
    const steps = distance(word, name);
    if (best === undefined || steps < best.steps) best = { name, steps };
  }
  return best !== undefined && best.steps <= Math.max(2, Math.floor(word.length / 3)) ? best.name : undefined;
}
