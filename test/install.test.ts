// What `pnpm start` installs, derived from the lockfile and the manifests. Reads files only.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), "utf8");

type Versions = Readonly<Record<string, string>>;
interface Lockfile {
  readonly importers: Readonly<
    Record<string, Readonly<Record<"dependencies" | "optionalDependencies", Readonly<Record<string, { version: string }>>>>>
  >;
  readonly snapshots: Readonly<Record<string, { dependencies?: Versions; optionalDependencies?: Versions } | null>>;
}

/** Names of all packages that an install without development dependencies brings. */
function installedToRun({ importers, snapshots }: Lockfile): Set<string> {
  const seen = new Set<string>();
  const waiting = Object.values(importers).flatMap((one) =>
    Object.entries({ ...one.dependencies, ...one.optionalDependencies }).map(([name, { version }]) => `${name}@${version}`),
  );
  for (const key of waiting) {
    if (seen.has(key)) continue;
    seen.add(key);
    const of = snapshots[key];
    for (const [name, version] of Object.entries({ ...of?.dependencies, ...of?.optionalDependencies })) waiting.push(`${name}@${version}`);
  }
  return new Set([...seen].map((key) => key.slice(0, key.indexOf("@", 1))));
}

test("U39 pnpm start installs no browser, no linter, no test runner and no other client", () => {
  const names = installedToRun(parse(read("pnpm-lock.yaml")) as Lockfile);
  expect(names).toContain("vite");
  expect(names).toContain("ws");
  const tools = [
    "@biomejs/biome",
    "@copilotkit/aimock",
    "@sparticuz/chromium",
    "fast-check",
    "iii-sdk",
    "knip",
    "playwright-core",
    "vitest",
  ];
  expect(tools.filter((name) => names.has(name))).toEqual([]);
});

test("U39 a script installs what it needs before it runs, whichever is the first; start needs less", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const isPart = ([name, text]: [string, string]) => /^check:/.test(name) || /^pnpm /.test(text);
  for (const [name, text] of Object.entries(scripts).filter((one) => !isPart(one))) {
    expect(text, name).toMatch(name === "start" ? /^node harness\/bin\/install\.js run && / : /^node harness\/bin\/install\.js all && /);
  }
});
