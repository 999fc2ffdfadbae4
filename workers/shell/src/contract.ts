// shell::*: files below one root and commands run in it. Schemas and definitions only.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

/** Relative to the root, or absolute inside it. */
const Path = z.string().min(1).max(4_096);
const Encoding = z.enum(["utf8", "base64"]);

export const fsRead = defineFunction({
  id: "shell::fs::read",
  about: "Read a file below the root. `truncated` says that `content` is not the whole rest of the file.",
  input: z.object({
    path: Path,
    offset: z.int().nonnegative().optional(),
    max_bytes: z.int().positive().optional(),
    encoding: Encoding.optional(),
  }),
  output: z.object({ content: z.string(), truncated: z.boolean(), size: z.int() }),
  arguments: { path: "path" },
  effect: "none",
  parallel: true,
});
export const fsWrite = defineFunction({
  id: "shell::fs::write",
  about: "Write a whole file below the root, replacing what was there in one step. `create_dirs` makes missing folders.",
  input: z.object({ path: Path, content: z.string(), encoding: Encoding.optional(), create_dirs: z.boolean().optional() }),
  output: z.object({ path: z.string(), size: z.int(), created: z.boolean() }),
  arguments: { path: "path" },
  effect: "idempotent",
});
export const fsLs = defineFunction({
  id: "shell::fs::ls",
  about: "List a folder below the root, sorted by name.",
  input: z.object({ path: Path.optional() }),
  output: z.object({
    entries: z.array(z.object({ name: z.string(), type: z.enum(["file", "dir", "symlink", "other"]), size: z.int() })),
    truncated: z.boolean(),
  }),
  arguments: { path: "path" },
  effect: "none",
  parallel: true,
});
export const fsGrep = defineFunction({
  id: "shell::fs::grep",
  about: "Find lines that match a regular expression (RE2 syntax) in the files below a folder. Links are not followed.",
  input: z.object({
    pattern: z.string().min(1).max(1_000),
    path: Path.optional(),
    ignore_case: z.boolean().optional(),
    max_matches: z.int().positive().max(1_000).optional(),
  }),
  output: z.object({
    matches: z.array(z.object({ path: z.string(), line: z.int(), text: z.string() })),
    truncated: z.boolean(),
    files_searched: z.int(),
  }),
  arguments: { path: "path" },
  effect: "none",
  parallel: true,
});
/** The program is started directly; nothing parses its arguments. For a shell line: `{command: "sh", args: ["-c", LINE]}`. */
export const exec = defineFunction({
  id: "shell::exec",
  about: "Run one program in the root with a clean environment and wait for it. For a shell line: command `sh`, args [`-c`, LINE].",
  input: z.object({
    command: z.string().min(1).max(4_096),
    args: z.array(z.string()).max(1_000).optional(),
    cwd: Path.optional(),
    timeout_ms: z.int().positive().max(600_000).optional(),
    stdin: z.string().optional(),
  }),
  output: z.object({
    exit_code: z.int().nullable(),
    signal: z.string().nullable(),
    stdout: z.string(),
    stderr: z.string(),
    truncated: z.boolean(),
    timed_out: z.boolean(),
    duration_ms: z.number(),
  }),
  arguments: { command: "command", args: "arguments", cwd: "path", stdin: "input" },
  effect: "at_most_once",
  timeout_ms: 600_000,
});
