// What the entries of config.yaml may claim and call, and which names of the environment reach their processes.
import { existsSync, readFileSync } from "node:fs";
import type { EntryRights } from "@iii/engine";
import type { StackConfig, WorkerEntry } from "@iii/engine/config";
import { BusError, issueText } from "@iii/sdk";
import { parse } from "yaml";
import { z } from "zod";
import { bundledFile } from "./bundled.ts";

const Names = z.array(z.string().min(1)).default([]);
const Manifest = z.looseObject({ provides: Names, calls: Names, env: Names });
export type Manifest = z.infer<typeof Manifest>;

const NONE: Manifest = { provides: [], calls: [], env: [] };

/** The rights in the manifest of a bundled worker. @throws BusError `config_invalid` when it has another shape. */
export function manifestOf(name: string): Manifest {
  const file = bundledFile(name, "iii.worker.yaml");
  if (!existsSync(file)) return NONE;
  const parsed = Manifest.safeParse(parse(readFileSync(file, "utf8")));
  if (parsed.success) return parsed.data;
  throw new BusError("config_invalid", `workers/${name}/iii.worker.yaml: ${issueText(parsed.error)}`);
}

/**
 * An entry with a bundled worker's name has that manifest's rights, whatever runs it, and those of its own lines.
 * Hooks are bound by the lines of the entry alone.
 */
export function rightsOf(entry: WorkerEntry): EntryRights {
  const { provides, calls } = manifestOf(entry.name);
  const inherited = calls.filter((id) => !id.startsWith("hook::"));
  return { provides: [...provides, ...entry.provides], calls: [...inherited, ...entry.calls] };
}

/** Makes `entries` say what the config says now. */
export function readRights(entries: Map<string, EntryRights>, config: StackConfig): void {
  const enabled = config.workers.filter((entry) => entry.enabled);
  entries.clear();
  for (const entry of enabled) entries.set(entry.name, rightsOf(entry));
}
