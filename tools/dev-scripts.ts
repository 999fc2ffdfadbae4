// Writes the `dev:<worker>` scripts of package.json from the folders in workers/. With --check it only says whether they match.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const INSTALL = "node harness/bin/install.js all";

/** The command asks the running engine for the token of that entry, and starts the watcher with it. */
const commandFor = (name: string): string => `${INSTALL} && exec node harness/bin/iii.js dev ${name}`;

/** The scripts that the folders ask for. */
export function devScripts(): Record<string, string> {
  const names = readdirSync(`${ROOT}workers`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(`${ROOT}workers/${entry.name}/src/index.ts`))
    .map((entry) => entry.name)
    .sort();
  return Object.fromEntries(names.map((name) => [`dev:${name}`, commandFor(name)]));
}

interface Manifest {
  scripts: Record<string, string>;
}

/** The manifest with exactly these dev scripts. */
export function withDevScripts(manifest: Manifest, scripts: Record<string, string>): Manifest {
  const others = Object.entries(manifest.scripts).filter(([name]) => !name.startsWith("dev:"));
  return { ...manifest, scripts: { ...Object.fromEntries(others), ...scripts } };
}

if (import.meta.main) {
  const file = `${ROOT}package.json`;
  const now = readFileSync(file, "utf8");
  const wanted = `${JSON.stringify(withDevScripts(JSON.parse(now) as Manifest, devScripts()), null, 2)}\n`;
  if (process.argv.includes("--check")) process.exitCode = now === wanted ? 0 : 1;
  else if (now !== wanted) writeFileSync(file, wanted);
}
