// From config.yaml to a plan of processes.
import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type EntryProblem,
  type EntryView,
  formatFault,
  type LoadResult,
  loadConfig,
  type StackConfig,
  type WorkerEntry,
} from "@iii/engine/config";
import type { Plan, ProcessSpec, WorkerPlan } from "@iii/engine/supervisor";
import { bundledConfigs, bundledFile, bundledWorkers, editedSince, lackingParts } from "./bundled.ts";
import { manifestOf } from "./rights.ts";

export type Env = Readonly<Record<string, string | undefined>>;

const HERE = fileURLToPath(new URL("..", import.meta.url));
const HOST = fileURLToPath(new URL("./host.ts", import.meta.url));

/** The file that a worker's folder starts with: `src/index.ts`, what package.json calls `main`, `index.ts` or `index.js`. */
function entryFile(folder: string): string | undefined {
  const candidates = ["src/index.ts", mainOf(folder), "index.ts", "index.js"];
  return candidates
    .map((file) => (file === undefined ? "" : join(folder, file)))
    .find((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
}

function mainOf(folder: string): string | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return typeof manifest === "object" && manifest !== null && "main" in manifest ? String(manifest.main) : undefined;
  } catch {
    return undefined;
  }
}

function packageFile(name: string, root: string): string | undefined {
  for (const base of [root, HERE]) {
    try {
      return createRequire(join(base, "package.json")).resolve(name);
    } catch {
      // The next place may have it.
    }
  }
  return undefined;
}

/** A name without any source is a folder of `workers/`, whole; one beside config.yaml is not looked for, but pointed at. */
function nameProblem({ name }: EntryView, root: string): EntryProblem | undefined {
  const lacking = lackingParts(name);
  if (lacking !== undefined) return { key: "name", message: lacking, hint: "sdk/README.md shows a whole one" };
  const beside = ["workers", "."].map((folder) => join(folder, name)).find((folder) => entryFile(resolve(root, folder)) !== undefined);
  if (beside === undefined || existsSync(bundledFile(name, ""))) return undefined;
  return { key: "name", message: `there is no bundled worker '${name}'`, hint: `for the folder beside this file say path: ./${beside}` };
}

function entryProblem(entry: EntryView, root: string): EntryProblem | undefined {
  if (entry.path !== undefined) {
    const folder = resolve(root, entry.path);
    if (!existsSync(folder))
      return { key: "path", message: `there is no folder ${folder}`, hint: "paths start from the folder of config.yaml" };
    if (entryFile(folder) === undefined)
      return { key: "path", message: `${folder} has no src/index.ts, package.json main, index.ts or index.js` };
  }
  if (entry.package !== undefined && packageFile(entry.package, root) === undefined) {
    return { key: "package", message: `the package '${entry.package}' is not installed`, hint: `pnpm add ${entry.package}` };
  }
  const isNamed = entry.path === undefined && entry.package === undefined && entry.command === undefined && entry.external === undefined;
  return isNamed ? nameProblem(entry, root) : undefined;
}

/** Reads and checks a config file against this machine: bundled names and their settings, folders and packages. */
export async function readStack(path: string, env: Env): Promise<LoadResult> {
  const root = dirname(resolve(path));
  const knownWorkers = bundledWorkers();
  const configs = await bundledConfigs(knownWorkers);
  return loadConfig(path, { env, knownWorkers, configs, checkEntry: (entry) => entryProblem(entry, root) });
}

/** All faults of a broken config file, one a line. */
export function faultLines(result: Extract<LoadResult, { ok: false }>): string[] {
  return result.faults.map(formatFault);
}

export interface PlanContext {
  /** Folder of config.yaml. */
  readonly root: string;
  /** Where the bus listens now, for a worker of this name: with its token. */
  readonly urlOf: (name: string) => string;
  readonly env: Env;
}

/** What any child may see of this process's environment. Keys stand there too: the rest a worker's manifest names under `env`. */
const COMMON_ENV =
  /^(?:PATH|HOME|LANG|LC_.+|TZ|TMPDIR|(?:https?|no|all)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR)|III_.+|OTEL_.+|FAILPOINTS(?:_FILE)?)$/i;

function childEnv(env: Env, named: readonly string[]): Record<string, string> {
  const wanted = Object.entries(env).filter(([name]) => COMMON_ENV.test(name) || named.includes(name));
  return Object.fromEntries(wanted.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

function argvOf(entry: WorkerEntry, root: string): readonly string[] {
  if (entry.command !== undefined) return entry.command;
  if (entry.package !== undefined) return [process.execPath, packageFile(entry.package, root) ?? ""];
  const folder = entry.path === undefined ? bundledFile(entry.name, "") : resolve(root, entry.path);
  return [process.execPath, entryFile(folder) ?? ""];
}

/** Modules stay loaded for as long as the shared host runs: code that was edited since gets a process of its own, which loads it anew. */
const STARTED_MS = Date.now();

function sourceOf(entry: WorkerEntry): WorkerPlan["source"] {
  if (entry.external === true) return "external";
  if (entry.command !== undefined) return "command";
  if (entry.package !== undefined) return "package";
  if (entry.path !== undefined) return "path";
  return entry.isolate || editedSince(entry.name, STARTED_MS) ? "isolated" : "bundled";
}

/**
 * An environment of its own takes a process: in the engine's there is one for all. So does every worker of a stack that kept dying:
 * the one that does it dies alone then, and is named.
 */
function sourceIn(entry: WorkerEntry, bundled: StackConfig["engine"]["bundled"], env: Env): WorkerPlan["source"] {
  const source = sourceOf(entry);
  if (source !== "bundled") return source;
  const isApart = env["III_ISOLATE_BUNDLED"] === "1" || (bundled === "linked" && Object.keys(entry.env).length > 0);
  return isApart ? "isolated" : "bundled";
}

function planWorker(entry: WorkerEntry, context: PlanContext, bundled: StackConfig["engine"]["bundled"]): WorkerPlan {
  const base = { name: entry.name, source: sourceIn(entry, bundled, context.env), restart: entry.restart };
  if (base.source === "external") return base;
  if (base.source === "bundled") {
    const module = bundledFile(entry.name, "src/register.ts");
    return { ...base, bundled: { name: entry.name, module, config: entry.config, root: context.root, url: context.urlOf(entry.name) } };
  }
  const env = {
    ...childEnv(context.env, manifestOf(entry.name).env),
    III_URL: context.urlOf(entry.name),
    III_ROOT: context.root,
    III_SUPERVISED: "1",
    III_WORKER_NAME: entry.name,
    III_WORKER_CONFIG: JSON.stringify(entry.config),
    ...entry.env,
  };
  const spec: ProcessSpec = { argv: argvOf(entry, context.root), env, cwd: context.root, ipc: false };
  return { ...base, process: spec };
}

/** The shared host. It is told with each worker where the bus is: it may be started before anybody knows. */
function hostOf({ root, env }: PlanContext, bundled: readonly WorkerEntry[]): ProcessSpec {
  const named = bundled.flatMap((entry) => manifestOf(entry.name).env);
  const own: Record<string, string> = Object.assign({}, ...bundled.map((entry) => entry.env));
  const more = { III_ROOT: root, III_SUPERVISED: "1", III_WORKER_NAME: "host" };
  return { argv: [process.execPath, HOST], env: { ...childEnv(env, named), ...own, ...more }, cwd: root, ipc: true };
}

/** What should run, for a config that has been checked. */
export function planOf(config: StackConfig, context: PlanContext): Plan {
  const enabled = config.workers.filter((entry) => entry.enabled);
  const bundled = enabled.filter((entry) => sourceOf(entry) === "bundled");
  const host = hostOf(context, bundled);
  return { host, workers: enabled.map((entry) => planWorker(entry, context, config.engine.bundled)) };
}
