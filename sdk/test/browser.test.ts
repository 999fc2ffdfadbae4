import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const SRC = join(import.meta.dirname, "../src");
const IMPORT = /^(?:import|export)\s[^;]*?from\s+"(?<target>[^"]+)"/gms;

function reach(file: string, seen: Map<string, string[]>): void {
  if (seen.has(file)) return;
  const text = readFileSync(file, "utf8");
  const packages: string[] = [];
  seen.set(file, packages);
  for (const { 0: statement, groups } of text.matchAll(IMPORT)) {
    if (statement.startsWith("import type") || statement.startsWith("export type")) continue;
    const target = groups?.["target"] ?? "";
    if (target.startsWith(".")) reach(join(dirname(file), target), seen);
    else packages.push(target);
  }
}

test.each([
  ["browser.ts", []],
  ["index.ts", ["zod"]],
])("nothing that %s reaches needs Node, and the page needs no schema library", (entry, packages) => {
  const seen = new Map<string, string[]>();
  reach(join(SRC, entry), seen);
  expect(seen.size).toBeGreaterThan(20);
  expect([...new Set([...seen.values()].flat())]).toEqual(packages);
});
