// The bundled workers: the folders of `workers/`. There is no list of them anywhere.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { z } from "zod";

export const REPO = fileURLToPath(new URL("../..", import.meta.url));
const WORKERS = join(REPO, "workers");
/** What a worker's folder must hold to be one. */
const PARTS = ["src/index.ts", "src/register.ts", "package.json"];

/** Names of the bundled workers: the folders below `workers/` that have a `src/register.ts`. */
export function bundledWorkers(folder: string = WORKERS): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, "src/register.ts")))
    .map((entry) => entry.name)
    .sort();
}

export function bundledFile(name: string, file: string): string {
  return join(WORKERS, name, file);
}

/** What the folder of a bundled worker lacks, in words; undefined when it lacks nothing, or there is no such folder. */
export function lackingParts(name: string, folder: string = WORKERS): string | undefined {
  const home = join(folder, name);
  if (!existsSync(home)) return undefined;
  const missing = PARTS.filter((part) => !existsSync(join(home, part)));
  const last = missing.pop();
  if (last === undefined) return undefined;
  return `workers/${name} has no ${missing.length === 0 ? last : `${missing.join(", ")} and ${last}`}`;
}

/** The schemas of what the bundled workers take as `config`. A file that cannot be loaded is its worker's fault to report, at its start. */
export async function bundledConfigs(names: readonly string[], folder: string = WORKERS): Promise<ReadonlyMap<string, z.ZodType>> {
  const loaded = await Promise.all(
    names.map(async (name) => {
      const file = join(folder, name, "src/config.ts");
      if (!existsSync(file)) return [];
      const module = (await import(pathToFileURL(file).href).catch(() => ({}))) as { Config?: unknown };
      return module.Config instanceof z.ZodType ? [[name, module.Config] as const] : [];
    }),
  );
  return new Map(loaded.flat());
}

/** Whether a file of the worker's code has changed since `ms` (wall clock): a process that loaded it before then runs the old one. */
export function editedSince(name: string, ms: number, folder: string = WORKERS): boolean {
  const code = join(folder, name, "src");
  if (!existsSync(code)) return false;
  return readdirSync(code, { recursive: true, encoding: "utf8" }).some((file) => {
    const stat = statSync(join(code, file), { throwIfNoEntry: false });
    return stat?.isFile() === true && stat.mtimeMs > ms;
  });
}
