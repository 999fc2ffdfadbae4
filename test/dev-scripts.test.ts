import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { devScripts, withDevScripts } from "../tools/dev-scripts.ts";

test("package.json has one dev script for each worker folder: node tools/dev-scripts.ts writes them", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  expect(manifest).toEqual(withDevScripts(manifest, devScripts()));
});

test("every dev script hands signals on by replacing its shell", () => {
  for (const [name, script] of Object.entries(devScripts())) expect(script, name).toMatch(/ && exec [^&]*$/);
});
