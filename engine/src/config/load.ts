// Reads config.yaml: parse, fill in ${…}, let the environment have its say, check, and report every fault at once with its place. Never
// throws for what stands in the file.
import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { nearest } from "@iii/sdk";
import { parseDocument, type Scalar, visit } from "yaml";
import { z } from "zod";
import { type EntryChecks, entryFaults } from "./entries.ts";
import { overridden } from "./environment.ts";
import { type Env, interpolate } from "./interpolate.ts";
import { type Fault, faultAt, type Path, pathOf, pathText, type Source } from "./place.ts";
import { StackConfig } from "./schema.ts";
import { readYaml } from "./syntax.ts";

export interface LoadOptions extends EntryChecks {
  readonly env: Env;
}

export type LoadResult =
  | { readonly ok: true; readonly config: StackConfig /** The folder that relative paths start from. */; readonly root: string }
  | { readonly ok: false; readonly faults: readonly Fault[] };

const MAX_FAULTS = 50;

/** Fills in every scalar value; keys stay as they are. Returns the faults and the paths whose whole value was one placeholder. */
function fillIn(source: Source, env: Env): { faults: Fault[]; lone: Map<string, Scalar> } {
  const faults: Fault[] = [];
  const lone = new Map<string, Scalar>();
  visit(source.doc, {
    Scalar(key, node, ancestors) {
      if (key === "key" || typeof node.value !== "string" || !node.value.includes("${")) return;
      const path = pathOf([...ancestors, node]);
      const result = interpolate(node.value, env);
      if (result.problem !== undefined) faults.push(faultAt(source, path, result.problem.message, { hint: result.problem.hint }));
      node.value = result.text;
      if (result.lone) lone.set(pathText(path), node);
    },
  });
  return { faults, lone };
}

function asScalar(text: string): unknown {
  const value: unknown = parseDocument(text, { schema: "core" }).toJS();
  return typeof value === "object" && value !== null ? text : value;
}

/** A lone placeholder takes the type that its place asks for; inside a worker's `config`, which only the worker knows, YAML's own reading. */
function coerce(lone: ReadonlyMap<string, Scalar>, issues: readonly z.core.$ZodIssue[]): boolean {
  let changed = false;
  for (const issue of issues) {
    const node = lone.get(pathText(issue.path.map((part) => (typeof part === "symbol" ? String(part) : part))));
    if (node === undefined || typeof node.value !== "string" || issue.code === "unrecognized_keys") continue;
    const value = asScalar(node.value);
    if (typeof value !== "number" && typeof value !== "boolean") continue;
    node.value = value;
    changed = true;
  }
  return changed;
}

interface JsonSchema {
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  additionalProperties?: JsonSchema;
}

/** The keys that the schema knows at a path. */
function keysAt(path: Path): readonly string[] {
  let schema: JsonSchema | undefined = z.toJSONSchema(StackConfig, { io: "input" }) as JsonSchema;
  for (const part of path) {
    schema = typeof part === "number" ? schema?.items : (schema?.properties?.[part] ?? schema?.additionalProperties);
  }
  return Object.keys(schema?.properties ?? {});
}

function issueFaults(source: Source, issue: z.core.$ZodIssue): Fault[] {
  const path: Path = issue.path.map((part) => (typeof part === "symbol" ? String(part) : part));
  if (issue.code === "unrecognized_keys") {
    const known = keysAt(path);
    return issue.keys.map((key) => {
      const meant = nearest(key, known);
      const hint = meant === undefined ? `known keys: ${known.join(", ")}` : `did you mean "${meant}"?`;
      return faultAt(source, path, "unknown key", { key, hint });
    });
  }
  const missing = issue.code === "invalid_type" && path.length > 0 && source.doc.getIn(path) === undefined;
  return [faultAt(source, path, missing ? "missing" : issue.message)];
}

/** The document as plain values, lone placeholders of workers' settings read as YAML reads a scalar; undefined for one with aliases. */
function valuesOf({ doc }: Source, lone: ReadonlyMap<string, Scalar>): { data: unknown } | undefined {
  for (const [path, node] of lone) if (/^workers\[\d+\]\.config\./.test(path)) node.value = asScalar(String(node.value));
  try {
    return { data: doc.toJS({ maxAliasCount: 0 }) };
  } catch {
    return undefined;
  }
}

/** Reads the text of a config file. All faults in one report, in the order of the file. */
export function parseConfig(
  text: string,
  file: string,
  options: LoadOptions,
): Exclude<LoadResult, { ok: true }> | { ok: true; config: StackConfig } {
  const read = readYaml(text, file);
  if ("faults" in read) return { ok: false, faults: read.faults.slice(0, MAX_FAULTS) };
  const { source } = read;
  const { doc } = source;
  if (doc.contents === null) return { ok: false, faults: [faultAt(source, [], "the file is empty", { hint: "start with 'version: 1'" })] };
  const { faults, lone } = fillIn(source, options.env);
  const values = valuesOf(source, lone);
  if (values === undefined) {
    return { ok: false, faults: [faultAt(source, [], "anchors and aliases are not allowed", { hint: "write the value out" })] };
  }
  let settings = overridden(values.data, options.env);
  let parsed = StackConfig.safeParse(settings.data);
  if (!parsed.success && coerce(lone, parsed.error.issues)) {
    settings = overridden(doc.toJS({ maxAliasCount: 0 }), options.env);
    parsed = StackConfig.safeParse(settings.data);
  }
  if (!parsed.success) faults.push(...parsed.error.issues.flatMap((issue) => issueFaults(source, issue)));
  faults.push(...settings.faults, ...entryFaults(source, workersOf(settings.data), options));
  if (parsed.success && faults.length === 0) return { ok: true, config: parsed.data };
  faults.sort((a, b) => a.line - b.line || a.col - b.col);
  return { ok: false, faults: faults.filter(firstOfItsPlace).slice(0, MAX_FAULTS) };
}

function workersOf(data: unknown): unknown {
  return typeof data === "object" && data !== null && "workers" in data ? data.workers : undefined;
}

function firstOfItsPlace(fault: Fault, index: number, all: readonly Fault[]): boolean {
  return all.findIndex((other) => other.path === fault.path && other.line === fault.line) === index;
}

/** Reads a config file. A file that cannot be read is a fault like any other. */
export async function loadConfig(path: string, options: LoadOptions): Promise<LoadResult> {
  const file = basename(path);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const hint = "give another file with -c or III_CONFIG";
    return { ok: false, faults: [{ file, line: 1, col: 1, path: "", message: `cannot be read: ${reason}`, hint }] };
  }
  const result = parseConfig(text, file, options);
  return result.ok ? { ...result, root: dirname(resolve(path)) } : result;
}
