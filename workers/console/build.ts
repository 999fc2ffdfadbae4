// Builds the page when it is missing or older than its sources; `node workers/console/build.ts` does nothing when it is up to date.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PAGE = join(HERE, "dist/index.html");
/** Everything that ends up in the page. Contracts come in as types only and so do not. */
const SOURCES = [join(HERE, "ui"), join(HERE, "package.json"), join(HERE, "../../sdk/src")];

/** Whether the page is missing or older than one of its sources. */
export function needsBuild(page: string = PAGE, sources: readonly string[] = SOURCES): boolean {
  const built = modified(page);
  return built === 0 || sources.some((source) => newest(source) > built);
}

/** Builds the page into `dist`. Rejects with the bundler's error; the page that was there before is then gone or stale. */
export async function build(): Promise<void> {
  const vite = await import("vite");
  await vite.build({ root: join(HERE, "ui"), configFile: join(HERE, "ui/vite.config.ts"), logLevel: "warn" });
}

function newest(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  const inside = readdirSync(path).filter((name) => name !== "node_modules");
  return Math.max(0, ...inside.map((name) => newest(join(path, name))));
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

if (import.meta.main && needsBuild()) await build();
