// Confinement: what can be read, written, listed and searched, by every way out of the root we know.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { link, mkdir, mkdtemp, readFile as read, rename, rm, symlink, writeFile as write } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { systemRandom } from "@iii/sdk";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Root } from "../src/confine.ts";
import { listDir, readFile, wholeCharacters, writeFile } from "../src/files.ts";
import { grep } from "../src/grep.ts";

/** Swaps a folder for a link that leads outside, as fast as it can, on a thread of its own. */
const SWAPPER = `
  const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
  const { parentPort, workerData: { base, dir, real } } = require("node:worker_threads");
  parentPort.postMessage("ready");
  for (;;) {
    renameSync(dir, real);
    symlinkSync(base, dir);
    unlinkSync(dir);
    renameSync(real, dir);
  }
`;
const limits = { max_read_bytes: 1_000, max_write_bytes: 1_000 };
const never = new AbortController().signal;
let base: string;
let root: Root;
let secret: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "shell-"));
  root = await Root.create(join(base, "root"));
  secret = join(base, "secret");
  await write(secret, "SECRET");
});
afterEach(() => rm(base, { recursive: true }));
const inRoot = (path: string) => join(root.path, path);
const reading = (path: string, more: object = {}) => readFile(root, { path, ...more }, limits);
const writing = (path: string, content = "new", more: object = {}) => writeFile(root, { path, content, ...more }, limits, systemRandom);

describe("ways out of the root", () => {
  test.each([
    ["dots", "../secret", "path_outside_root"],
    ["dots after a folder", "a/../../secret", "path_outside_root"],
    ["an absolute path", "/etc/passwd", "path_outside_root"],
    ["/proc/self/environ", "/proc/self/environ", "path_outside_root"],
    ["a sibling with the same beginning", "../root-other/x", "path_outside_root"],
    ["a home folder is only a name", "~/.ssh/id", "NOT_FOUND"],
    ["escaped dots are only a name", "%2e%2e/secret", "NOT_FOUND"],
    ["a NUL", "a\0b", "invalid_payload"],
    ["a folder for a file", ".", "invalid_payload"],
    ["another case", "FILE", "NOT_FOUND"],
    ["a trailing dot", "file.", "NOT_FOUND"],
  ])("%s: %j gives %s", async (_title, path, code) => {
    await write(inRoot("file"), "x");
    await expect(reading(path)).rejects.toMatchObject({ code });
  });
  test.each([
    ["a link to a file outside", async () => symlink(secret, inRoot("out")), "out"],
    ["a link to a folder outside", async () => symlink(base, inRoot("out")), "out/secret"],
    ["a link to a link", () => symlink(secret, inRoot("l")).then(() => symlink(inRoot("l"), inRoot("out"))), "out"],
    ["a relative link", async () => symlink("../secret", inRoot("out")), "out"],
    ["a link into /proc", async () => symlink("/proc/self/environ", inRoot("out")), "out"],
  ])("%s is not followed out", async (_title, make, path) => {
    await make();
    await expect(reading(path)).rejects.toMatchObject({ code: "path_outside_root" });
    await expect(listDir(root, path)).rejects.toMatchObject({ code: expect.stringMatching(/path_outside_root|invalid_payload/) });
    await expect(writing(path)).rejects.toMatchObject({ code: "path_outside_root" });
    expect(await read(secret, "utf8")).toBe("SECRET");
  });
  test("K7.5 a link inside the root is neither read nor written through: the path that was judged is the path that is opened", async () => {
    await mkdir(inRoot("docs"));
    await write(inRoot("file"), "inside");
    await symlink("../file", inRoot("docs/link"));
    await symlink(".", inRoot("docs/here"));
    await symlink("..", inRoot("docs/up"));
    for (const path of ["docs/link", "docs/here/link", "docs/up/file"]) {
      await expect(reading(path)).rejects.toMatchObject({ code: "path_outside_root", message: expect.stringContaining("link") });
      await expect(writing(path)).rejects.toMatchObject({ code: "path_outside_root" });
    }
    expect((await reading("file")).content).toBe("inside");
  });
  test.each([
    ["dots are resolved by their text, before anything is opened", "docs/../file"],
    ["doubled slashes", "docs//.././/file"],
    ["a folder that is not there", "none/../file"],
  ])("K7.5 %s: %j is the path that a policy judges", async (_title, path) => {
    await write(inRoot("file"), "inside");
    expect((await reading(path)).content).toBe("inside");
  });
  test("K7.5 a parent swapped for a link inside the root at any moment opens nothing but what was named", async () => {
    await mkdir(inRoot("private"));
    await write(inRoot("private/f"), "PRIVATE");
    await mkdir(inRoot("docs"));
    await write(inRoot("docs/f"), "public");
    const swapper = new Worker(SWAPPER, {
      eval: true,
      workerData: { base: inRoot("private"), dir: inRoot("docs"), real: inRoot("docs-real") },
    });
    await once(swapper, "message");
    const seen = new Set<string>();
    for (let i = 0; i < 400; i += 1) {
      const got = await Promise.allSettled([reading("docs/f"), reading("docs/f"), writing("docs/new", "x")]);
      for (const one of got.slice(0, 2)) if (one.status === "fulfilled" && "content" in one.value) seen.add(one.value.content);
    }
    await swapper.terminate();
    expect([...seen]).toEqual(["public"]);
    await expect(read(inRoot("private/new"))).rejects.toThrow();
  });
  test("a pipe neither hangs nor reads", async () => {
    execFileSync("mkfifo", [inRoot("pipe")]);
    await expect(reading("pipe")).rejects.toMatchObject({ code: "invalid_payload" });
    await expect(writing("pipe")).rejects.toMatchObject({ code: "invalid_payload" });
    expect((await grep(root, { pattern: "." }, never)).files_searched).toBe(0);
  });
  test("writing a hard link leaves the other name alone", async () => {
    await link(secret, inRoot("hard"));
    await writing("hard", "changed");
    expect(await read(secret, "utf8")).toBe("SECRET");
  });
  test("folders are made inside the root only", async () => {
    await symlink(base, inRoot("out"));
    await expect(writing("out/made/file", "x", { create_dirs: true })).rejects.toMatchObject({ code: "path_outside_root" });
    await expect(read(join(base, "made/file"))).rejects.toThrow();
  });
  test("a folder swapped for a link at any moment lets nothing in or out", async () => {
    await mkdir(inRoot("real"));
    await write(inRoot("real/secret"), "inside");
    await rename(inRoot("real"), inRoot("dir"));
    const swapper = new Worker(SWAPPER, { eval: true, workerData: { base, dir: inRoot("dir"), real: inRoot("real") } });
    await once(swapper, "message");
    const seen = new Set<string>();
    const attempt = async () => {
      const [got] = await Promise.allSettled([reading("dir/secret"), writing("dir/planted", "x")]);
      seen.add(got.status === "fulfilled" ? got.value.content : "refused");
    };
    for (let i = 0; i < 150; i += 1)
      await Promise.all([attempt(), attempt(), attempt(), attempt(), grep(root, { pattern: "SECRET" }, never)]);
    await swapper.terminate();
    expect(seen).toContain("inside");
    expect(seen).toContain("refused");
    expect(seen).not.toContain("SECRET");
    await expect(read(join(base, "planted"))).rejects.toThrow();
  });
});

describe("reading", () => {
  test("gives content, size, and says when it is cut", async () => {
    await write(inRoot("f"), "x".repeat(1_500));
    expect(await reading("f")).toEqual({ content: "x".repeat(1_000), truncated: true, size: 1_500 });
    expect(await reading("f", { offset: 1_400 })).toEqual({ content: "x".repeat(100), truncated: false, size: 1_500 });
    expect(await reading(inRoot("f"), { max_bytes: 3 })).toMatchObject({ content: "xxx", truncated: true });
  });
  test("bytes survive as base64", async () => {
    await write(inRoot("f"), Buffer.from([0, 255, 1]));
    expect((await reading("f", { encoding: "base64" })).content).toBe(Buffer.from([0, 255, 1]).toString("base64"));
  });
  test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])("a text cut after %i bytes has no half character", async (max_bytes) => {
    await write(inRoot("f"), "aé€😀xyz");
    expect((await reading("f", { max_bytes })).content).not.toContain("\ufffd");
  });
  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])("K14.1 a text read from byte %i on has no half character", async (offset) => {
    const text = "aé€😀xyz";
    await write(inRoot("f"), text);
    for (const max_bytes of [1, 2, 3, 4, 5, 100]) {
      const { content } = await reading("f", { offset, max_bytes });
      expect(content).not.toContain("\ufffd");
      expect(text).toContain(content);
    }
  });
  test("K14.1 a line that is shown in part ends in a whole character", async () => {
    await write(inRoot("f"), `${"x".repeat(399)}😀 end`);
    const { matches } = await grep(root, { pattern: "end", path: "f" }, never);
    expect(matches[0]?.text).toBe("x".repeat(399));
  });
  test("whole characters are kept whole", () => {
    expect(wholeCharacters(Buffer.from("é")).toString()).toBe("é");
    expect(wholeCharacters(Buffer.from([0x80, 0x80]))).toHaveLength(2);
  });
});

describe("writing", () => {
  test("creates, replaces, keeps the mode, and leaves no other file", async () => {
    expect(await writing("a/b/f", "one", { create_dirs: true })).toEqual({ path: "a/b/f", size: 3, created: true });
    execFileSync("chmod", ["750", inRoot("a/b/f")]);
    expect(await writing("a/b/f", "two")).toMatchObject({ created: false });
    expect(execFileSync("stat", ["-c", "%a", inRoot("a/b/f")], { encoding: "utf8" }).trim()).toBe("750");
    expect((await listDir(root, "a/b")).entries).toEqual([{ name: "f", type: "file", size: 3 }]);
  });
  test.each([
    ["a missing folder", "no/f", "x", "NOT_FOUND"],
    ["a folder's own name", "dir", "x", "invalid_payload"],
    ["the root", ".", "x", "invalid_payload"],
    ["more than the limit", "f", "x".repeat(1_001), "payload_too_large"],
    ["below a file", "file/f", "x", "invalid_payload"],
  ])("%s is refused", async (_title, path, content, code) => {
    await mkdir(inRoot("dir"));
    await write(inRoot("file"), "x");
    await expect(writing(path, content)).rejects.toMatchObject({ code });
  });
});

test("a folder is listed by name with types, and links are shown as links", async () => {
  await mkdir(inRoot("b"));
  await write(inRoot("a"), "12");
  await symlink(secret, inRoot("c"));
  expect((await listDir(root, ".")).entries).toMatchObject([
    { name: "a", type: "file", size: 2 },
    { name: "b", type: "dir" },
    { name: "c", type: "symlink" },
  ]);
  await expect(listDir(root, "a")).rejects.toMatchObject({ code: "invalid_payload" });
});

test.each(["not base64!", "YWJj=", "YW\nJj"])("content that is no base64 is refused, not written in part: %j", async (content) => {
  await write(inRoot("kept"), "old");
  const writing = writeFile(root, { path: "kept", content, encoding: "base64" }, limits, systemRandom);
  await expect(writing).rejects.toMatchObject({ code: "invalid_payload", message: expect.stringContaining("'content'") });
  expect(await read(inRoot("kept"), "utf8")).toBe("old");
});

describe("grep", () => {
  beforeEach(async () => {
    await mkdir(inRoot("sub"));
    await write(inRoot("a.txt"), "one\r\ntwo\nOne more\n");
    await write(inRoot("sub/b.txt"), "one");
    await write(inRoot("bin"), Buffer.from("one\0"));
    await symlink(base, inRoot("out"));
  });
  test("finds lines in order, in text files below the folder", async () => {
    expect(await grep(root, { pattern: "^one$" }, never)).toEqual({
      matches: [
        { path: "a.txt", line: 1, text: "one" },
        { path: "sub/b.txt", line: 1, text: "one" },
      ],
      truncated: false,
      files_searched: 3,
    });
  });
  test("can ignore case, start at a file, and stop at a limit", async () => {
    expect((await grep(root, { pattern: "ONE", path: "a.txt", ignore_case: true }, never)).matches).toHaveLength(2);
    expect(await grep(root, { pattern: "o", max_matches: 1 }, never)).toMatchObject({ truncated: true, matches: [{ line: 1 }] });
  });
  test("a pattern that unfolds into a huge program is refused, not run", async () => {
    await write(inRoot("a.txt"), "a".repeat(20_000));
    await expect(grep(root, { pattern: "\\pL{1000}".repeat(90) }, never)).rejects.toMatchObject({ code: "invalid_payload" });
  });
  test("an abort is heard in the middle of a file", async () => {
    await write(inRoot("a.txt"), "no match here\n".repeat(70_000));
    const controller = new AbortController();
    const running = grep(root, { pattern: "[0-9]$", path: "a.txt" }, controller.signal);
    controller.abort();
    await expect(running).rejects.toThrow("aborted");
  });
  test("a pattern that is no RE2 is refused", async () => {
    await expect(grep(root, { pattern: "(a)\\1" }, never)).rejects.toMatchObject({ code: "invalid_payload" });
  });
});
