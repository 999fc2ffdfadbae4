// The file vault: one JSON object of provider to credential, readable by its owner only. Never prints what it holds.
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BusError } from "@iii/sdk";
import { z } from "zod";
import { Credential } from "./contract.ts";

const Contents = z.record(z.string(), Credential);
type Contents = z.infer<typeof Contents>;

export interface Vault {
  get(provider: string): Promise<Credential | null>;
  set(provider: string, credential: Credential): Promise<void>;
  delete(provider: string): Promise<void>;
  providers(): Promise<string[]>;
}

const FILE_MODE = 0o600;
const DIR_MODE = 0o700;
const OTHERS = 0o077;

function refuse(path: string, why: string, fix: string): never {
  throw new BusError("io_error", `the credential vault ${path} is not used: ${why}; ${fix}`, { details: { path } });
}

/** Fails on anything that is not the owner's alone; checked on what is open, so that nothing can be swapped in between. */
async function check(handle: FileHandle, path: string): Promise<void> {
  const { mode, uid } = await handle.stat();
  const open = mode & OTHERS & 0o777;
  if (open !== 0)
    refuse(path, `its mode is ${(mode & 0o777).toString(8)}, others may open it`, `run: chmod ${FILE_MODE.toString(8)} ${path}`);
  const self = process.getuid?.();
  if (self !== undefined && uid !== self) refuse(path, "it belongs to another user", `run: chown $(id -u) ${path}`);
}

const isMissing = (thrown: unknown) => typeof thrown === "object" && thrown !== null && "code" in thrown && thrown.code === "ENOENT";

async function openOrNull(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (thrown) {
    if (isMissing(thrown)) return null;
    const code = typeof thrown === "object" && thrown !== null && "code" in thrown ? String(thrown.code) : "unknown";
    return refuse(path, `it cannot be opened (${code})`, "it must be a plain file of yours");
  }
}

function decode(path: string, text: string): Contents {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    refuse(path, "it is not JSON", "repair or remove it");
  }
  const parsed = Contents.safeParse(value);
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues[0]?.path[0];
  return refuse(path, `the entry '${String(where ?? "")}' is not a credential`, "repair or remove it");
}

async function read(path: string): Promise<Contents> {
  const handle = await openOrNull(path);
  if (handle === null) return {};
  try {
    await check(handle, path);
    return decode(path, await handle.readFile("utf8"));
  } finally {
    await handle.close();
  }
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Whole or not at all, and on disk before it answers. */
async function write(path: string, contents: Contents, suffix: string): Promise<void> {
  const directory = dirname(path);
  await mkdir(directory, { recursive: true, mode: DIR_MODE });
  const temporary = join(directory, `.vault-${suffix}.tmp`);
  try {
    const handle = await open(temporary, "wx", FILE_MODE);
    try {
      await handle.chmod(FILE_MODE);
      await handle.writeFile(`${JSON.stringify(contents, null, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
  await syncDirectory(directory);
}

/** A vault at `path`. The file is read anew each time, so that edits by hand count; changes of this process run one after another. */
export function fileVault(path: string, uniqueSuffix: () => string): Vault {
  let last: Promise<void> = Promise.resolve();
  const change = (apply: (contents: Map<string, Credential>) => void): Promise<void> => {
    const run = async () => {
      const contents = new Map(Object.entries(await read(path)));
      apply(contents);
      await write(path, Object.fromEntries(contents), uniqueSuffix());
    };
    const result = last.then(run);
    last = result.catch(() => {});
    return result;
  };
  return {
    async get(provider) {
      const contents = await read(path);
      return Object.hasOwn(contents, provider) ? (contents[provider] ?? null) : null;
    },
    set: (provider, credential) => change((contents) => contents.set(provider, credential)),
    delete: (provider) => change((contents) => contents.delete(provider)),
    providers: async () => Object.keys(await read(path)).sort(),
  };
}
