// Static mounts: a folder read once into memory, and how its files are answered. Serving touches no disk.
import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { extname, join, relative, resolve, sep } from "node:path";
import { BusError } from "@iii/sdk";
import type { HttpRequest, HttpResponse } from "./port.ts";

const MAX_BYTES = 16 * 1_048_576;
const MAX_FILES = 2_000;
/** Paths that belong to programs: a page load there is answered 404, never with the page. */
const NOT_PAGES = /^\/(api|v1|ws|mcp|healthz|harness|otel)(\/|$)/;
const HASHED = /[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
};

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

interface StaticFile {
  readonly bytes: Uint8Array;
  readonly type: string;
  readonly etag: string;
  readonly cache: string;
}

interface Mount {
  readonly mount: string;
  readonly spa: boolean;
  readonly owner: string;
  readonly files: ReadonlyMap<string, StaticFile>;
  readonly bytes: number;
}

async function readOne(path: string, name: string): Promise<StaticFile> {
  const bytes = await readFile(path);
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  const cache = HASHED.test(name) ? "public, max-age=31536000, immutable" : "no-cache";
  return { bytes, type: TYPES[extname(name)] ?? "application/octet-stream", etag, cache };
}

/** Reads a folder. Files that a link leads out of it are left out. @throws BusError when it is missing or too large. */
export async function readMount(spec: { mount: string; dir: string; spa: boolean; owner: string }): Promise<Mount> {
  const root = await realpath(resolve(spec.dir)).catch((cause: unknown) => {
    throw new BusError("io_error", `'${spec.dir}' cannot be read: is it built?`, { cause });
  });
  const files = new Map<string, StaticFile>();
  let total = 0;
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue;
    const path = await realpath(join(entry.parentPath, entry.name));
    if (!path.startsWith(root + sep) || !(await stat(path)).isFile()) continue;
    const name = relative(root, join(entry.parentPath, entry.name)).split(sep).join("/");
    const file = await readOne(path, name);
    total += file.bytes.byteLength;
    if (total > MAX_BYTES || files.size >= MAX_FILES) {
      throw new BusError("payload_too_large", `'${spec.dir}' is more than ${MAX_BYTES} bytes or ${MAX_FILES} files`);
    }
    files.set(name, file);
  }
  const mount = spec.mount.endsWith("/") ? spec.mount : `${spec.mount}/`;
  return { mount, spa: spec.spa, owner: spec.owner, files, bytes: total };
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function fileFor(mount: Mount, request: HttpRequest): StaticFile | undefined {
  const name = decoded(request.path.slice(mount.mount.length));
  if (name === undefined) return undefined;
  const exact = mount.files.get(name === "" || name.endsWith("/") ? `${name}index.html` : name);
  if (exact !== undefined) return exact;
  const isPageLoad = mount.spa && !NOT_PAGES.test(request.path) && (request.headers["accept"] ?? "").includes("text/html");
  return isPageLoad ? mount.files.get("index.html") : undefined;
}

/** The file that answers this request, if the mount has one. */
function serveStatic(mount: Mount, request: HttpRequest): HttpResponse | undefined {
  if (request.method !== "GET" && request.method !== "HEAD") return undefined;
  if (!request.path.startsWith(mount.mount)) return undefined;
  const file = fileFor(mount, request);
  if (file === undefined) return undefined;
  const headers: [string, string][] = [
    ["etag", file.etag],
    ["cache-control", file.cache],
    ["x-content-type-options", "nosniff"],
    ["referrer-policy", "no-referrer"],
    ["cross-origin-opener-policy", "same-origin"],
    ["cross-origin-resource-policy", "same-origin"],
  ];
  if (file.type.startsWith("text/html")) headers.push(["content-security-policy", CSP]);
  if (request.headers["if-none-match"] === file.etag) return { status: 304, headers };
  headers.push(["content-type", file.type]);
  return { status: 200, headers, body: file.bytes };
}

interface Mounts {
  /** Takes the place of the owner's mount of the same path, if there is one. */
  add(mount: Mount): void;
  /** Ends every mount of an owner that is gone. */
  drop(owner: string): void;
  serve(request: HttpRequest): HttpResponse | undefined;
}

/** The mounts that are served now; the newest one that has the file answers. */
export function createMounts(): Mounts {
  let mounts: readonly Mount[] = [];
  return {
    add(mount) {
      mounts = [mount, ...mounts.filter((other) => other.mount !== mount.mount || other.owner !== mount.owner)];
    },
    drop(owner) {
      mounts = mounts.filter((mount) => mount.owner !== owner);
    },
    serve(request) {
      for (const mount of mounts) {
        const response = serveStatic(mount, request);
        if (response !== undefined) return response;
      }
      return undefined;
    },
  };
}
