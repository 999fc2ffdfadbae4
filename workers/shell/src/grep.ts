// Searches the files below a folder, line by line, in linear time. Links are not followed; large and binary files are left out.
import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { BusError } from "@iii/sdk";
import { RE2JS } from "re2js";
import { folderPath, type Opened, type Root } from "./confine.ts";

const MAX_FILE_BYTES = 1_048_576;
const MAX_FILES = 20_000;
const MAX_DEPTH = 64;
const MAX_LINE = 400;
/** Matching costs its program's size for each character: a short pattern can unfold into a huge program. */
const MAX_PROGRAM = 2_000;
/** Searched without a break; also what is looked at of one line. */
const SLICE = 65_536;
const SKIPPED = new Set([".git", "node_modules"]);

interface GrepRequest {
  readonly pattern: string;
  readonly path?: string | undefined;
  readonly ignore_case?: boolean | undefined;
  readonly max_matches?: number | undefined;
}
type Match = { path: string; line: number; text: string };
interface Search {
  readonly root: Root;
  readonly expression: RE2JS;
  readonly limit: number;
  readonly signal: AbortSignal;
  readonly matches: Match[];
  files: number;
  truncated: boolean;
}

export async function grep(
  root: Root,
  request: GrepRequest,
  signal: AbortSignal,
): Promise<{ matches: Match[]; truncated: boolean; files_searched: number }> {
  const search: Search = {
    root,
    expression: compile(request),
    limit: request.max_matches ?? 200,
    signal,
    matches: [],
    files: 0,
    truncated: false,
  };
  const start = await openStart(root, request.path ?? ".");
  if (start.kind === "dir") await searchDir(search, start.opened, 0);
  else await searchFile(search, start.opened);
  return { matches: search.matches, truncated: search.truncated, files_searched: search.files };
}

function compile({ pattern, ignore_case }: GrepRequest): RE2JS {
  let expression: RE2JS;
  try {
    expression = RE2JS.compile(pattern, ignore_case ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (cause) {
    throw new BusError("invalid_payload", `'pattern' is not RE2 syntax: ${cause instanceof Error ? cause.message : "unknown reason"}`, {
      cause,
    });
  }
  if (expression.programSize() <= MAX_PROGRAM) return expression;
  throw new BusError("invalid_payload", "'pattern' repeats too much: it would take too long; use smaller counts in {…}");
}

async function openStart(root: Root, given: string): Promise<{ kind: "dir" | "file"; opened: Opened }> {
  try {
    return { kind: "dir", opened: await root.openDir(given) };
  } catch (error) {
    if (!(error instanceof BusError) || error.code !== "invalid_payload") throw error;
    return { kind: "file", opened: await root.openFile(given) };
  }
}

async function searchDir(search: Search, opened: Opened, depth: number): Promise<void> {
  await using _ = opened.handle;
  const entries = await readdir(folderPath(opened), { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    if (isOver(search)) return;
    if (!SKIPPED.has(entry.name)) await searchEntry(search, opened, entry, depth);
  }
}

async function searchEntry(search: Search, parent: Opened, entry: Dirent, depth: number): Promise<void> {
  if (entry.isDirectory() && depth < MAX_DEPTH) {
    const child = await search.root.openChild(parent, entry.name, "dir");
    if (child !== undefined) await searchDir(search, child, depth + 1);
  } else if (entry.isFile()) {
    const child = await search.root.openChild(parent, entry.name, "file");
    if (child !== undefined) await searchFile(search, child);
  }
}

function isOver(search: Search): boolean {
  search.signal.throwIfAborted();
  if (search.matches.length < search.limit && search.files < MAX_FILES) return false;
  search.truncated = true;
  return true;
}

async function searchFile(search: Search, { handle, path }: Opened): Promise<void> {
  await using _ = handle;
  const facts = await handle.stat();
  if (!facts.isFile() || facts.size > MAX_FILE_BYTES) return;
  const bytes = await handle.readFile();
  search.files += 1;
  if (bytes.includes(0)) return;
  let sliced = 0;
  for (const [i, line] of bytes.toString("utf8").split(/\r?\n/u).entries()) {
    sliced += line.length + 1;
    if (sliced > SLICE) {
      sliced = 0;
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
    search.signal.throwIfAborted();
    if (line.length > SLICE) search.truncated = true;
    if (!search.expression.test(line.slice(0, SLICE))) continue;
    if (search.matches.length >= search.limit) {
      search.truncated = true;
      return;
    }
    search.matches.push({ path: search.root.relative(path), line: i + 1, text: beginning(line) });
  }
}

/** Never ends in half of a surrogate pair. */
function beginning(line: string): string {
  const cut = line.slice(0, MAX_LINE);
  return cut.length < line.length && !cut.isWellFormed() ? cut.slice(0, -1) : cut;
}
