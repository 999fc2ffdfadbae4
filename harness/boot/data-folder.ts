// The data folder, tried before anything is opened in it: a place that cannot hold files is named with its cause.
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BusError } from "@iii/sdk";

const CAUSES: Readonly<Record<string, (at: string) => string>> = {
  EACCES: (at) => `no right to write in ${at}`,
  EPERM: (at) => `writing in ${at} is not permitted`,
  EROFS: (at) => `${at} is on a read-only file system`,
  ENOSPC: (at) => `the disk that holds ${at} is full`,
  EDQUOT: (at) => `the quota of the disk that holds ${at} is used up`,
  ENOENT: (at) => `${at} takes no files`,
  ENOTDIR: (at) => `a file stands in the place of a folder at ${at}`,
  EEXIST: (at) => `something that is no folder stands at ${at}`,
  ELOOP: (at) => `${at} is a link to itself`,
  ENAMETOOLONG: (at) => `the name of ${at} is too long`,
};

function unusable(folder: string, at: string, thrown: unknown): BusError {
  const { code = "", message = String(thrown) } = thrown as { code?: string; message?: string };
  const cause = CAUSES[code]?.(at) ?? message;
  const text = `engine.data: the folder ${folder} cannot hold files: ${cause}; name another with III_DATA_DIR or engine.data`;
  return new BusError("config_invalid", text, { cause: thrown, details: { folder } });
}

/** Makes the folder and those above it one by one: below `/proc`, Node's recursive mkdir never returns. */
function makeFolder(folder: string): void {
  const missing: string[] = [];
  let at = folder;
  while (statSync(at, { throwIfNoEntry: false }) === undefined && dirname(at) !== at) {
    missing.push(at);
    at = dirname(at);
  }
  for (const path of missing.reverse()) mkdirSync(path, { mode: 0o700 });
}

/**
 * Makes the folder if it is not there, and tries it with a file.
 * @throws BusError `config_invalid` with the cause
 */
export function openDataFolder(folder: string): void {
  const probe = join(folder, `.probe-${process.pid}`);
  try {
    makeFolder(folder);
    if (!statSync(folder).isDirectory()) throw Object.assign(new Error("not a folder"), { code: "ENOTDIR", path: folder });
    writeFileSync(probe, "probe", { mode: 0o600 });
    rmSync(probe);
  } catch (thrown) {
    const { path = folder } = thrown as { path?: string };
    throw unusable(folder, path === probe ? folder : path, thrown);
  }
}
