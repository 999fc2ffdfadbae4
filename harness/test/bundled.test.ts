import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bundledConfigs, bundledWorkers, editedSince, lackingParts } from "../boot/bundled.ts";
import { faultLines, readStack } from "../boot/stack.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "iii-bundled-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function make(...files: string[]): void {
  for (const file of files) {
    mkdirSync(join(folder, file, ".."), { recursive: true });
    writeFileSync(join(folder, file), "");
  }
}

test.each<[string, string[], string | undefined]>([
  ["its code alone, laid out flat", ["notes/register.ts"], "workers/notes has no src/index.ts, src/register.ts and package.json"],
  ["src/register.ts alone", ["notes/src/register.ts"], "workers/notes has no src/index.ts and package.json"],
  ["no package.json", ["notes/src/register.ts", "notes/src/index.ts"], "workers/notes has no package.json"],
  ["everything", ["notes/src/register.ts", "notes/src/index.ts", "notes/package.json"], undefined],
  ["no folder at all", [], undefined],
])("U6 a worker's folder with %s: what it lacks is named", (_title, files, expected) => {
  make(...files);
  expect(lackingParts("notes", folder)).toBe(expected);
});

test("U6 a folder beside config.yaml is pointed at, because names alone are bundled workers", async () => {
  make("workers/notes/src/index.ts");
  writeFileSync(join(folder, "config.yaml"), "version: 1\nworkers:\n  - name: notes\n");
  const read = await readStack(join(folder, "config.yaml"), {});
  expect(read.ok ? [] : faultLines(read)).toEqual([
    "config.yaml:3:11 workers[0].name: there is no bundled worker 'notes'; for the folder beside this file say path: ./workers/notes",
  ]);
});

test("U49 the settings of every bundled worker are known before anything starts", async () => {
  const names = bundledWorkers();
  expect([...(await bundledConfigs(names)).keys()].sort()).toEqual(names);
});

test("U41 code that changed after the start is known by its files, however deep, and gets a fresh process", () => {
  make("notes/src/register.ts", "notes/src/deep/store.ts", "notes/README.md");
  const [before, start, after] = [1_000, 2_000, 3_000];
  for (const file of ["src/register.ts", "src/deep/store.ts"]) utimesSync(join(folder, "notes", file), before, before);
  utimesSync(join(folder, "notes/README.md"), after, after);
  expect(editedSince("notes", start * 1_000, folder)).toBe(false);
  utimesSync(join(folder, "notes/src/deep/store.ts"), after, after);
  expect(editedSince("notes", start * 1_000, folder)).toBe(true);
  expect(editedSince("nobody", start * 1_000, folder)).toBe(false);
});
