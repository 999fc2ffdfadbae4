// Where config.yaml is, and a watch that says when it changed in content.

import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import type { Env } from "./stack.ts";

/** The flag wins over `III_CONFIG`, and that over `./config.yaml`. */
export function configPath(flag: string | undefined, env: Env): string {
  return resolve(flag ?? env["III_CONFIG"] ?? "config.yaml");
}

async function contentOf(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}

/** Calls `changed` after the file's content changed; editors that replace the file count too. Returns the end of the watch. */
export async function watchConfig(path: string, changed: () => void): Promise<() => Promise<void>> {
  // Loaded here: most commands watch nothing, and a start has better things to do first.
  const { watch } = await import("chokidar");
  let last = await contentOf(path);
  const name = basename(path);
  const watcher = watch(dirname(path), {
    depth: 0,
    ignoreInitial: true,
    ignored: (file, stats) => stats?.isFile() === true && basename(file) !== name,
  });
  const check = async () => {
    const now = await contentOf(path);
    if (now === undefined || now === last) return;
    last = now;
    changed();
  };
  watcher.on("all", () => void check());
  return () => watcher.close();
}
