// The boot starts what config.yaml names and shows what manifests say. Reads files only.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bundledWorkers } from "../boot/bundled.ts";

const BOOT = new URL("../boot/", import.meta.url);
const NAMES = bundledWorkers();
/** The product's own name is also that of a worker. */
const PRODUCT = "iii harness";

function withoutComments(file: string): string {
  return readFileSync(new URL(file, BOOT), "utf8").replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*/g, " ");
}

test.each(readdirSync(BOOT).filter((file) => file.endsWith(".ts")))("boot/%s knows no worker by name, package or setting", (file) => {
  const source = withoutComments(file);
  const texts = [...source.matchAll(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g)].map(([text]) =>
    text.replaceAll(PRODUCT, ""),
  );
  const named = texts.filter((text) => NAMES.some((name) => new RegExp(`(?<![a-z-])${name}(?![a-z-])`).test(text)));
  expect(named).toEqual([]);
  expect(source).not.toMatch(/@iii\/worker-/);
  // What stands in an entry's config is its worker's affair.
  expect(source).not.toMatch(/entry\.config(\[|\.[a-z])/);
});
