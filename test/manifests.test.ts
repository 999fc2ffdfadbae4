// Each worker's manifest says what its code says: name, entry, config, and whose functions it calls.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { checkConfig, type WorkerDefinition } from "@iii/sdk";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { bundledWorkers } from "../harness/boot/bundled.ts";

const WORKERS = fileURLToPath(new URL("../workers", import.meta.url));

interface Manifest {
  iii: string;
  name: string;
  description: string;
  scripts: { start: string };
  /** Whose functions the worker cannot do without … */
  dependencies: Record<string, string>;
  /** … and whose it uses where they are there. */
  optional_dependencies?: Record<string, string>;
  config: unknown;
}

function sources(folder: string): string {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  return files.map((file) => readFileSync(join(folder, file), "utf8")).join("\n");
}

/** The workers and built-ins whose functions or triggers this source uses. */
function called(source: string): string[] {
  const found = new Set<string>();
  for (const [, name = ""] of source.matchAll(/from "@iii\/worker-([a-z-]+)\/contract"/g)) found.add(name);
  for (const [, names = ""] of source.matchAll(/import \{([^}]*)\} from "@iii\/engine\/contract"/g)) {
    if (/\bstate[A-Z]/.test(names)) found.add("iii-state");
    if (/\bstream[A-Z]/.test(names)) found.add("iii-stream");
  }
  for (const [, type = ""] of source.matchAll(/type: "(state|stream|http)", function_id/g)) found.add(`iii-${type}`);
  if (/trigger\w*\(\s*"http::static"/.test(source)) found.add("iii-http");
  // The provider kit calls these for its providers.
  if (source.includes("defineProvider(")) found.add("models-catalog");
  if (source.includes("defineProvider(") && !source.includes('credential: "none"')) found.add("auth-credentials");
  return [...found].sort();
}

describe.each(bundledWorkers())("%s", (name) => {
  const folder = join(WORKERS, name);
  const manifest = parse(readFileSync(join(folder, "iii.worker.yaml"), "utf8")) as Manifest;

  test("the manifest's name, entry and config are the code's", async () => {
    const { worker } = (await import(pathToFileURL(join(folder, "src/register.ts")).href)) as { worker: WorkerDefinition };
    expect(manifest).toMatchObject({ iii: "v1", name, scripts: { start: "node ./src/index.ts" } });
    expect(worker.name).toBe(name);
    expect(manifest.description.length).toBeGreaterThan(10);
    expect(existsSync(join(folder, "src/index.ts"))).toBe(true);
    expect(checkConfig(worker.config, manifest.config)).toMatchObject({ ok: true });
    const { Config } = (await import(pathToFileURL(join(folder, "src/config.ts")).href)) as { Config: unknown };
    expect(worker.config).toBe(Config);
  });

  test("the manifest names exactly the workers and built-ins whose contracts the code uses", () => {
    const own = new Set([name]);
    const said = Object.keys({ ...manifest.dependencies, ...manifest.optional_dependencies }).sort();
    expect(said).toEqual(called(sources(join(folder, "src"))).filter((other) => !own.has(other)));
  });
});
