// Reading, writing and listing below the root. Sizes are capped; a write replaces the whole file in one step.
import { constants } from "node:fs";
import { type FileHandle, lstat, open, readdir, rename, unlink } from "node:fs/promises";
import { BusError, type Random } from "@iii/sdk";
import { childPath, codeOf, folderPath, type Opened, type Root, toError } from "./confine.ts";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
const MAX_ENTRIES = 2_000;

export interface FileLimits {
  /** Most bytes that one read gives back. */
  readonly max_read_bytes: number;
  /** Most bytes that one write takes. */
  readonly max_write_bytes: number;
}
export type Entry = { name: string; type: "file" | "dir" | "symlink" | "other"; size: number };

type Encoding = "utf8" | "base64";
interface ReadRequest {
  readonly path: string;
  readonly offset?: number | undefined;
  readonly max_bytes?: number | undefined;
  readonly encoding?: Encoding | undefined;
}

export async function readFile(
  root: Root,
  request: ReadRequest,
  limits: FileLimits,
): Promise<{ content: string; truncated: boolean; size: number }> {
  const { handle } = await root.openFile(request.path);
  await using _ = handle;
  try {
    const { size } = await handle.stat();
    const offset = request.offset ?? 0;
    const wanted = Math.min(request.max_bytes ?? limits.max_read_bytes, limits.max_read_bytes);
    const bytes = await readUpTo(handle, offset, wanted);
    const truncated = offset + bytes.length < size;
    const whole = request.encoding === "base64" ? bytes : uncut(bytes, { start: offset > 0, end: truncated });
    return { content: whole.toString(request.encoding ?? "utf8"), truncated, size };
  } catch (cause) {
    throw toError(request.path, cause);
  }
}

async function readUpTo(handle: FileHandle, offset: number, wanted: number): Promise<Buffer> {
  const buffer = Buffer.alloc(wanted);
  let filled = 0;
  while (filled < wanted) {
    const { bytesRead } = await handle.read(buffer, filled, wanted - filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** Without the UTF-8 characters that were cut at those ends. */
export function uncut(bytes: Buffer, cut: { start: boolean; end: boolean }): Buffer {
  const from = cut.start ? characterStart(bytes) : bytes;
  return cut.end ? wholeCharacters(from) : from;
}

/** Drops the rest of a UTF-8 character that began before. */
function characterStart(bytes: Buffer): Buffer {
  const first = bytes.subarray(0, 4).findIndex((byte) => (byte & 0xc0) !== 0x80);
  if (first >= 0) return first > 3 ? bytes : bytes.subarray(first);
  return bytes.length > 3 ? bytes : bytes.subarray(bytes.length); // four in a row are no UTF-8
}

/** Drops a UTF-8 character that was cut at the end. */
export function wholeCharacters(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes;
    if (byte >= 0xc0) return back < lengthOf(byte) ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

function lengthOf(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}

interface WriteRequest {
  readonly path: string;
  readonly content: string;
  readonly encoding?: Encoding | undefined;
  readonly create_dirs?: boolean | undefined;
}

/** Writes beside the target and renames over it: readers see the old file or the new one, and other names of the old one keep it. */
export async function writeFile(
  root: Root,
  request: WriteRequest,
  limits: FileLimits,
  random: Random,
): Promise<{ path: string; size: number; created: boolean }> {
  const bytes = Buffer.from(request.content, request.encoding ?? "utf8");
  // Node skips what is no base64 and would write the rest.
  if (request.encoding === "base64" && bytes.toString("base64") !== request.content) {
    throw new BusError("invalid_payload", "'content' is not base64 (with padding, without line breaks)");
  }
  if (bytes.length > limits.max_write_bytes) {
    throw new BusError("payload_too_large", `'content' is ${bytes.length} bytes; at most ${limits.max_write_bytes} can be written`);
  }
  const parent = await root.openParent(request.path, request.create_dirs ?? false);
  await using _ = parent.handle;
  const target = childPath(parent, parent.name);
  try {
    const mode = await modeOf(target, request.path);
    await replace(target, childPath(parent, `.${random.hex(8)}.tmp`), bytes, mode ?? 0o644);
    return { path: root.relative(`${parent.path}/${parent.name}`), size: bytes.length, created: mode === undefined };
  } catch (cause) {
    throw toError(request.path, cause);
  }
}

async function replace(target: string, temporary: string, bytes: Buffer, mode: number): Promise<void> {
  const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  try {
    await handle.writeFile(bytes);
    await handle.chmod(mode);
    await handle.sync();
    await handle.close();
    await rename(temporary, target);
  } catch (error) {
    await handle.close().catch(() => undefined); // already closed when the rename failed
    await unlink(temporary).catch(() => undefined); // the write's own error is the one to report
    throw error;
  }
}

/** The mode of the file that is there; undefined when there is none. @throws when something else than a regular file is there. */
async function modeOf(target: string, given: string): Promise<number | undefined> {
  const facts = await lstat(target).catch((cause) => {
    if (codeOf(cause) === "ENOENT") return undefined;
    throw cause;
  });
  if (facts === undefined) return undefined;
  if (facts.isSymbolicLink()) throw new BusError("path_outside_root", `'${given}' is a link; links are not written through`);
  if (!facts.isFile()) throw new BusError("invalid_payload", `'${given}' is ${facts.isDirectory() ? "a folder" : "not a regular file"}`);
  return facts.mode & 0o777;
}

export async function listDir(root: Root, given: string): Promise<{ entries: Entry[]; truncated: boolean }> {
  const opened = await root.openDir(given);
  await using _ = opened.handle;
  try {
    const names = (await readdir(folderPath(opened))).sort();
    const entries = await Promise.all(names.slice(0, MAX_ENTRIES).map((name) => describe(opened, name)));
    return { entries: entries.filter((entry) => entry !== undefined), truncated: names.length > MAX_ENTRIES };
  } catch (cause) {
    throw toError(given, cause);
  }
}

async function describe(parent: Opened, name: string): Promise<Entry | undefined> {
  try {
    const facts = await lstat(childPath(parent, name));
    return { name, type: typeOf(facts), size: facts.size };
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return undefined; // removed while we looked
    throw cause;
  }
}

function typeOf(facts: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): Entry["type"] {
  if (facts.isFile()) return "file";
  if (facts.isDirectory()) return "dir";
  return facts.isSymbolicLink() ? "symlink" : "other";
}
