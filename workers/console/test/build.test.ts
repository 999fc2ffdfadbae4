import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { needsBuild } from "../build.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "console-"));
});
afterEach(() => rm(dir, { recursive: true }));

async function file(name: string, at: number): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, "");
  await utimes(path, at, at);
  return path;
}

test("a missing page is built", async () => {
  expect(needsBuild(join(dir, "index.html"), [await file("a.ts", 10)])).toBe(true);
});

test("a page older than one of its sources is built again, a newer one is not", async () => {
  const page = await file("index.html", 20);
  expect(needsBuild(page, [await file("a.ts", 10)])).toBe(false);
  expect(needsBuild(page, [await file("a.ts", 10), await file("b.ts", 30)])).toBe(true);
});
