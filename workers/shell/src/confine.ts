// Opens things below one root, and only there: part by part, each inside the folder opened before, never over a link. So a link swapped
// between a check and its use gains nothing, and the path that a policy judged is the path that is opened. Open folders are reached
// again through /proc/self/fd, never through the path.
import { constants, realpathSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { BusError } from "@iii/sdk";

const { O_RDONLY, O_NONBLOCK, O_NOCTTY, O_DIRECTORY, O_NOFOLLOW } = constants;
const HAS_PROC = process.platform === "linux";

/** An open file or folder below the root. `path` is where the descriptor really is. */
export interface Opened {
  readonly handle: FileHandle;
  readonly path: string;
}

export class Root {
  /** The root without links. */
  readonly path: string;

  /** `path` must exist. */
  constructor(path: string) {
    this.path = realpathSync(path);
  }

  /** Makes the folder if it is missing. */
  static async create(path: string): Promise<Root> {
    await mkdir(path, { recursive: true });
    return new Root(path);
  }

  /** The absolute path that `given` names. @throws BusError `path_outside_root` when it leaves the root by its own text. */
  locate(given: string): string {
    if (given.includes("\0")) throw new BusError("invalid_payload", "'path' must not contain a NUL character");
    const path = isAbsolute(given) ? resolve(given) : resolve(this.path, given);
    if (!this.contains(path)) throw outside(given);
    return path;
  }

  contains(path: string): boolean {
    return path === this.path || path.startsWith(this.path === sep ? sep : this.path + sep);
  }

  /** `path` as seen from the root, for answers. */
  relative(path: string): string {
    return path === this.path ? "." : path.slice(this.path.length + 1);
  }

  /** Opens a regular file for reading. A pipe or device is refused and cannot hang the open. */
  async openFile(given: string): Promise<Opened> {
    const path = this.locate(given);
    if (path === this.path) throw new BusError("invalid_payload", `'${given}' is a folder`);
    const parent = await this.#walk(given, dirname(path), false);
    await using _ = parent.handle;
    const opened = await this.#child(given, parent, basename(path), O_RDONLY | O_NONBLOCK | O_NOCTTY);
    return keep(opened, async () => {
      const facts = await opened.handle.stat();
      if (!facts.isFile())
        throw new BusError("invalid_payload", `'${given}' is ${facts.isDirectory() ? "a folder" : "not a regular file"}`);
      return opened;
    });
  }

  async openDir(given: string): Promise<Opened> {
    return this.#walk(given, this.locate(given), false);
  }

  /** Opens the folder that holds `given`, for creating or replacing it there. The last part is not looked at. */
  async openParent(given: string, createDirs: boolean): Promise<Opened & { readonly name: string }> {
    const path = this.locate(given);
    if (path === this.path) throw new BusError("invalid_payload", "'path' is the root itself");
    return { ...(await this.#walk(given, dirname(path), createDirs)), name: basename(path) };
  }

  /** Walks down from the root one part at a time, each opened inside the one before; with `create`, what is missing is made there. */
  async #walk(given: string, path: string, create: boolean): Promise<Opened> {
    let current = await this.#openRoot(given);
    if (path === this.path) return current;
    for (const part of this.relative(path).split(sep)) {
      const here = current;
      current = await keep(here, async () => {
        if (create) await makeDir(given, childPath(here, part));
        return this.#child(given, here, part, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
      });
      await here.handle.close();
    }
    return current;
  }

  async #openRoot(given: string): Promise<Opened> {
    const opened = { handle: await openOr(given, this.path, O_RDONLY | O_DIRECTORY), path: this.path };
    return keep(opened, async () => {
      if ((await descriptorPath(opened.handle, this.path)) !== this.path) throw outside(given);
      return opened;
    });
  }

  /** Opens an entry of an open folder. A link is refused wherever it leads: the path that was judged is the path that is opened. */
  async #child(given: string, parent: Opened, name: string, flags: number): Promise<Opened> {
    const at = childPath(parent, name);
    const handle = await open(at, flags | O_NOFOLLOW).catch(async (cause) => {
      throw (await isLink(at)) ? linked(given) : toError(given, cause);
    });
    const opened = { handle, path: join(parent.path, name) };
    if (HAS_PROC) return opened;
    return keep(opened, async () => {
      if ((await descriptorPath(handle, opened.path)) !== opened.path) throw outside(given);
      return opened;
    });
  }

  /** Opens an entry of an open folder without following a link; undefined when it is a link or has gone. */
  async openChild(parent: Opened, name: string, kind: "file" | "dir"): Promise<Opened | undefined> {
    const flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (kind === "dir" ? O_DIRECTORY : 0);
    try {
      return await this.#child(name, parent, name, flags);
    } catch (error) {
      if (error instanceof BusError) return undefined;
      throw error;
    }
  }
}

/** Runs `work`; closes what was opened when it throws. */
async function keep<T>(opened: Opened, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await opened.handle.close();
    throw error;
  }
}

function openOr(given: string, path: string, flags: number): Promise<FileHandle> {
  return open(path, flags).catch((cause) => {
    throw toError(given, cause);
  });
}

async function makeDir(given: string, path: string): Promise<void> {
  await mkdir(path).catch((cause) => {
    if (codeOf(cause) !== "EEXIST") throw toError(given, cause);
  });
}

function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (facts) => facts.isSymbolicLink(),
    () => false, // gone by now: the error of the open itself is told
  );
}

function linked(given: string): BusError {
  const message = `'${given}' leads over a link; links are not followed: name the file's own path`;
  return new BusError("path_outside_root", message, { details: { path: given } });
}

/** A path that reaches `name` in the open folder, wherever that folder has been moved or swapped to meanwhile. */
export function childPath(parent: Opened, name: string): string {
  return join(folderPath(parent), name);
}

/** A path to the open folder itself. It names this process, so that it also holds in a child that is being started. */
export function folderPath({ handle, path }: Opened): string {
  return HAS_PROC ? `/proc/${process.pid}/fd/${handle.fd}` : path;
}

async function descriptorPath(handle: FileHandle, path: string): Promise<string> {
  if (HAS_PROC) return readlink(`/proc/self/fd/${handle.fd}`);
  // Without /proc the best that can be had: the real path, if it still is what was opened.
  const real = await realpath(path);
  const [opened, found] = [await handle.stat(), await stat(real)];
  if (opened.ino !== found.ino || opened.dev !== found.dev) throw new BusError("path_outside_root", "the path changed while it was opened");
  return real;
}

export function outside(given: string): BusError {
  return new BusError("path_outside_root", `'${given}' is outside the root of the shell worker`, { details: { path: given } });
}

export function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined;
}

/** A failed file operation as the caller should see it. */
export function toError(given: string, cause: unknown): BusError {
  if (cause instanceof BusError) return cause;
  const details = { path: given, errno: codeOf(cause) };
  switch (codeOf(cause)) {
    case "ENOENT":
      return new BusError("NOT_FOUND", `'${given}' does not exist`, { details, cause });
    case "ENOTDIR":
      return new BusError("invalid_payload", `'${given}': a part of the path is not a folder`, { details, cause });
    case "ELOOP":
      return new BusError("path_outside_root", `'${given}' is a link; links are not followed here`, { details, cause });
    default:
      return new BusError("io_error", `'${given}': ${codeOf(cause) ?? "failed"}`, { details, cause });
  }
}
