import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDataFolder } from "../boot/data-folder.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "iii-data-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a data folder is made with those above it, for its owner alone, and the trial leaves nothing", () => {
  const data = join(folder, "a/b/data");
  openDataFolder(data);
  openDataFolder(data);
  expect(readdirSync(data)).toEqual([]);
  expect(statSync(data).mode & 0o777).toBe(0o700);
});

test.each<[string, (path: string) => string, RegExp]>([
  ["below /proc", () => "/proc/self/nothing/data", /cannot hold files: \/proc\/self\/nothing takes no files/],
  ["/proc itself", () => "/proc/self", /cannot hold files: /],
  ["a device", () => "/dev/null", /a file stands in the place of a folder at \/dev\/null/],
  [
    "a file in its place",
    (path) => {
      writeFileSync(path, "x");
      return path;
    },
    /cannot hold files: a file stands in the place of a folder at .*data;/,
  ],
  [
    "a file above it",
    (path) => {
      writeFileSync(path, "x");
      return join(path, "data/deeper");
    },
    /a file stands in the place of a folder/,
  ],
  [
    "a link to nowhere",
    (path) => {
      symlinkSync(join(path, "../nowhere/at/all"), path);
      return path;
    },
    /something that is no folder stands at/,
  ],
  ["a name that is too long", (path) => join(path, "x".repeat(300)), /is too long/],
  ["a name with a zero byte", (path) => `${path}\u0000`, /cannot hold files: /],
])("U48 %s cannot be the data folder, and the cause is named", (_title, make, expected) => {
  const path = make(join(folder, "data"));
  const wrong = () => openDataFolder(path);
  expect(wrong).toThrow(expect.objectContaining({ code: "config_invalid", message: expect.stringMatching(expected) }));
  expect(wrong).toThrow(/name another with III_DATA_DIR or engine\.data/);
});
