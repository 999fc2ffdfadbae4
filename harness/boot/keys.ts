// Keys and tokens on disk: the operator's key for people and the command line, and the hashes of tokens that outlive an engine.
import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { BusError, issueText } from "@iii/sdk";
import { z } from "zod";

const KEY = /^[0-9a-f]{64}$/;

const Kept = z.array(z.object({ hash: z.string().regex(KEY), kind: z.enum(["operator", "entry"]), name: z.string() }));
type Kept = z.infer<typeof Kept>;

/** On disk before it returns; readable by its owner alone. `flags` as for `open`. */
function writeDurably(file: string, text: string, flags: "w" | "wx"): void {
  const open = openSync(file, flags, 0o600);
  try {
    writeSync(open, text);
    fsyncSync(open);
  } finally {
    closeSync(open);
  }
}

/** A file's text as JSON; undefined when it is none. */
function json(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

export const newKey = (): string => randomBytes(32).toString("hex");

const keyFile = (folder: string): string => join(folder, "operator.key");

/** The operator's key of a data folder, as the command line reads it; undefined when there is none that this user can read. */
export function readOperatorKey(folder: string): string | undefined {
  try {
    const key = readFileSync(keyFile(folder), "utf8").trim();
    return KEY.test(key) ? key : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The page's key: a new one for each engine, but for one that follows a crash. Pages that were open find their engine again;
 * an engine that ends in order takes `runFile` away.
 */
export function pageKey(runFile: string): string {
  const left = existsSync(runFile) ? json(runFile) : undefined;
  const { page_key } = (typeof left === "object" && left !== null ? left : {}) as { page_key?: unknown };
  return typeof page_key === "string" && KEY.test(page_key) ? page_key : newKey();
}

/** The operator's key, made at the first start. @throws BusError `config_invalid` for a file that holds something else. */
export function operatorKey(folder: string): string {
  const file = keyFile(folder);
  if (!existsSync(file)) {
    const key = newKey();
    writeDurably(file, `${key}\n`, "wx");
    return key;
  }
  chmodSync(file, 0o600);
  const key = readOperatorKey(folder);
  if (key === undefined)
    throw new BusError("config_invalid", `${file} is no operator's key: one line of 64 hex digits; remove it for a new one`);
  return key;
}

/** `tokens.json` below the data folder: hashes only. */
export function tokenStore(folder: string): { read(): Kept; write(tokens: readonly Kept[number][]): Promise<void> } {
  const file = join(folder, "tokens.json");
  return {
    read() {
      if (!existsSync(file)) return [];
      const parsed = Kept.safeParse(json(file));
      if (parsed.success) return parsed.data;
      throw new BusError("config_invalid", `${file} is not a list of tokens: ${issueText(parsed.error)}; remove it to forget them all`);
    },
    async write(tokens) {
      writeDurably(`${file}.new`, `${JSON.stringify(tokens, null, 2)}\n`, "w");
      renameSync(`${file}.new`, file);
    },
  };
}
