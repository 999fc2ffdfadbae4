// Reads config.yaml: parse, fill in ${…}, check, and report every fault at once with its place. Never throws for what stands in the file.
import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { nearest } from "@iii/sdk";
import { type Document, isMap, isPair, isScalar, LineCounter, parseDocument, type Scalar, visit } from "yaml";
import { z } from "zod";
import { type Env, interpolate } from "./interpolate.ts";
import { StackConfig, type WorkerEntry } from "./schema.ts";

export interface Fault {
  readonly file: string;
  readonly line: number;
  readonly col: number;
  /** Where in the document, e.g. `workers[1].enabled`; empty for the whole file. */
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
}

export interface LoadOptions {
  readonly env: Env;
  /** Names of the bundled workers; without it names are not checked. */
  readonly knownWorkers?: readonly string[];
  /** What is wrong with an entry that only the machine can tell, e.g. a `path` that leads nowhere. */
  readonly checkEntry?: (entry: WorkerEntry) => EntryProblem | undefined;
}

export interface EntryProblem {
  readonly key: "path" | "package" | "command" | "name";
  readonly message: string;
  readonly hint?: string;
}

export type LoadResult =
  | { readonly ok: true; readonly config: StackConfig /** The folder that relative paths start from. */; readonly root: string }
  | { readonly ok: false; readonly faults: readonly Fault[] };

type Path = readonly (string | number)[];
interface Source {
  readonly file: string;
  readonly doc: Document;
  readonly lines: LineCounter;
}

const MAX_FAULTS = 50;

export function pathText(path: Path): string {
  return path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`)).join("");
}

/** `config.yaml:7:5 workers[1].enabledd: unknown key; did you mean "enabled"?` */
export function formatFault(fault: Fault): string {
  const place = `${fault.file}:${fault.line}:${fault.col}`;
  return `${place} ${fault.path === "" ? "" : `${fault.path}: `}${fault.message}${fault.hint === undefined ? "" : `; ${fault.hint}`}`;
}

function startOf(node: unknown): number | undefined {
  const range = typeof node === "object" && node !== null && "range" in node ? node.range : undefined;
  return Array.isArray(range) && typeof range[0] === "number" ? range[0] : undefined;
}

function keyStart(node: unknown, key: string): number | undefined {
  if (!isMap(node)) return undefined;
  return startOf(node.items.find((item) => isScalar(item.key) && item.key.value === key)?.key);
}

/** Offset of the node at `path`, or of its nearest ancestor. `key`: of the key itself inside its map. */
function offsetOf(doc: Document, path: Path, key?: string): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node: unknown = length === 0 ? doc.contents : doc.getIn(path.slice(0, length), true);
    const start = (key === undefined ? undefined : keyStart(node, key)) ?? startOf(node);
    if (start !== undefined) return start;
  }
  return 0;
}

function faultAt(source: Source, path: Path, message: string, options: { key?: string; hint?: string | undefined } = {}): Fault {
  const { line, col } = source.lines.linePos(offsetOf(source.doc, path, options.key));
  const full = options.key === undefined ? path : [...path, options.key];
  const place = { file: source.file, line: Math.max(1, line), col: Math.max(1, col), path: pathText(full) };
  return options.hint === undefined ? { ...place, message } : { ...place, message, hint: options.hint };
}

function syntaxFaults(source: Source, text: string): Fault[] {
  return source.doc.errors.map((error) => {
    const { line, col } = source.lines.linePos(error.pos[0]);
    const lineText = text.split("\n")[line - 1] ?? "";
    const message = error.message.split("\n")[0]?.replace(/ at line \d+, column \d+:?$/, "") ?? "not valid YAML";
    const place = { file: source.file, line: Math.max(1, line), col: Math.max(1, col), path: "" };
    return lineText.includes("${") ? { ...place, message, hint: 'quote this placeholder: "${NAME}"' } : { ...place, message };
  });
}

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

function pathOf(chain: readonly unknown[]): Path {
  const path: (string | number)[] = [];
  for (const [index, node] of chain.entries()) {
    if (isPair(node) && isScalar(node.key)) path.push(String(node.key.value));
    const child = chain[index + 1];
    if (typeof node === "object" && node !== null && "items" in node && Array.isArray(node.items) && !isMap(node)) {
      path.push(node.items.indexOf(child));
    }
  }
  return path;
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
  return [faultAt(source, path, missing ? `missing; ${issue.message}` : issue.message)];
}

const SOURCES = ["path", "package", "command", "external"] as const;

function unknownName(name: string, known: readonly string[]): EntryProblem | undefined {
  if (known.includes(name)) return undefined;
  const meant = nearest(name, known);
  const hint =
    meant === undefined ? `bundled are: ${known.join(", ")}; or say path, package, command or external` : `did you mean "${meant}"?`;
  return { key: "name", message: `there is no bundled worker '${name}'`, hint };
}

function problemOf(entry: WorkerEntry, sources: number, options: LoadOptions): EntryProblem | undefined {
  const { knownWorkers, checkEntry } = options;
  const unknown = sources === 0 && knownWorkers !== undefined ? unknownName(entry.name, knownWorkers) : undefined;
  return unknown ?? (sources > 1 ? undefined : checkEntry?.(entry));
}

function entryFaults(source: Source, workers: readonly WorkerEntry[], options: LoadOptions): Fault[] {
  const faults: Fault[] = [];
  const seen = new Set<string>();
  for (const [index, entry] of workers.entries()) {
    const at: Path = ["workers", index];
    const given = SOURCES.filter((key) => entry[key] !== undefined);
    if (seen.has(entry.name))
      faults.push(faultAt(source, [...at, "name"], `'${entry.name}' is named twice`, { hint: "one entry per worker" }));
    seen.add(entry.name);
    const second = given[1];
    if (second !== undefined) {
      faults.push(faultAt(source, at, `${given.join(" and ")} exclude each other`, { key: second, hint: "keep one of them" }));
    }
    const problem = problemOf(entry, given.length, options);
    if (problem !== undefined) faults.push(faultAt(source, [...at, problem.key], problem.message, { hint: problem.hint }));
  }
  return faults;
}

/** Reads the text of a config file. All faults in one report, in the order of the file. */
export function parseConfig(
  text: string,
  file: string,
  options: LoadOptions,
): Exclude<LoadResult, { ok: true }> | { ok: true; config: StackConfig } {
  const lines = new LineCounter();
  const doc = parseDocument(text, { lineCounter: lines, schema: "core", uniqueKeys: true, prettyErrors: false });
  const source: Source = { file, doc, lines };
  if (doc.errors.length > 0) return { ok: false, faults: syntaxFaults(source, text) };
  if (doc.contents === null) return { ok: false, faults: [faultAt(source, [], "the file is empty", { hint: "start with 'version: 1'" })] };
  const { faults, lone } = fillIn(source, options.env);
  let data: unknown;
  try {
    for (const [path, node] of lone) if (/^workers\[\d+\]\.config\./.test(path)) node.value = asScalar(String(node.value));
    data = doc.toJS({ maxAliasCount: 0 });
  } catch {
    return { ok: false, faults: [faultAt(source, [], "anchors and aliases are not allowed", { hint: "write the value out" })] };
  }
  let parsed = StackConfig.safeParse(data);
  if (!parsed.success && coerce(lone, parsed.error.issues)) parsed = StackConfig.safeParse(doc.toJS({ maxAliasCount: 0 }));
  if (!parsed.success) faults.push(...parsed.error.issues.flatMap((issue) => issueFaults(source, issue)));
  else faults.push(...entryFaults(source, parsed.data.workers, options));
  if (parsed.success && faults.length === 0) return { ok: true, config: parsed.data };
  faults.sort((a, b) => a.line - b.line || a.col - b.col);
  return { ok: false, faults: faults.filter(firstOfItsPlace).slice(0, MAX_FAULTS) };
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
