// Installs what is missing before a script runs: `run` is what `pnpm start` needs, `all` adds what tests and checks need.
// JavaScript on nothing but Node 18: it runs before the pinned Node is there. Costs 0.1 s when nothing is missing.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What pnpm noted after its last install: what it covered, and whether any manifest has changed since. */
function installed() {
  try {
    const { lastValidatedTimestamp, projects, settings } = JSON.parse(
      readFileSync(join(ROOT, "node_modules/.pnpm-workspace-state-v1.json"), "utf8"),
    );
    const folders = [ROOT, ...Object.keys(projects), ...workers()];
    const files = [
      ...folders.map((folder) => join(folder, "package.json")),
      join(ROOT, "pnpm-lock.yaml"),
      join(ROOT, "pnpm-workspace.yaml"),
    ];
    const isOld = (file) => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) <= lastValidatedTimestamp;
    return { fresh: files.every(isOld), all: settings.dev === true };
  } catch {
    return { fresh: false, all: false };
  }
}

/** A new worker's folder is not among the projects that pnpm noted. */
function workers() {
  const folder = join(ROOT, "workers");
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((path) => existsSync(join(path, "package.json")));
}

/** The pnpm that runs the script; without one, the one that npm brings. */
function pnpm() {
  const path = process.env.npm_execpath;
  if (path === undefined || !/pnpm/.test(path)) return ["npx", "-y", "pnpm"];
  return /\.[cm]?js$/.test(path) ? [process.execPath, path] : [path];
}

const { fresh, all } = installed();
const wantsAll = process.argv[2] === "all";
if (!fresh || (wantsAll && !all)) {
  const [command, ...first] = pnpm();
  // What a full install has brought stays: a start between two test runs must not take it away.
  const args = [...first, "install", ...(wantsAll || all ? [] : ["--prod"])];
  // On stderr: stdout belongs to the script.
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: ["inherit", 2, 2] });
  if (error !== undefined) process.stderr.write(`cannot run ${command}: ${error.message}\n`);
  process.exitCode = status ?? 1;
}
