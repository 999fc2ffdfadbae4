// Keys and tokens on disk: the operator's key for people and the command line, and the hashes of tokens that outlive an engine.
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BusError, issueText } from "@iii/sdk";
import { z } from "zod";

const KEY = /^[0-9a-f]{64}$/;

const Kept = z.array(z.object({ hash: z.string().regex(KEY), kind: z.enum(["operator", "entry"]), name: z.string() }));
type Kept = z.infer<typeof Kept>;

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

/** The operator's key, made at the first start. @throws BusError `config_invalid` for a file that holds something else. */
export function operatorKey(folder: string): string {
  const file = keyFile(folder);
  if (!existsSync(file)) {
    const key = newKey();
    writeFileSync(file, `${key}\n`, { mode: 0o600, flag: "wx" });
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
      const parsed = Kept.safeParse(JSON.parse(readFileSync(file, "utf8")));
      if (parsed.success) return parsed.data;
      throw new BusError("config_invalid", `${file} is not a list of tokens: ${issueText(parsed.error)}; remove it to forget them all`);
    },
    async write(tokens) {
      writeFileSync(`${file}.new`, `${JSON.stringify(tokens, null, 2)}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
  };
}
