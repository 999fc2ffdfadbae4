// Every promise has a test, and every id in a test is a promise.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { acceptance, evidence, idsIn } from "../../tools/requirements.ts";
import { REQUIREMENTS } from "./requirements.ts";

const ALL = evidence();

test("every requirement is shown by a test", () => {
  const shown = new Set(ALL.map((one) => one.id));
  expect([...REQUIREMENTS.keys()].filter((id) => !shown.has(id))).toEqual([]);
});

test("every id in a test is a requirement", () => {
  expect(ALL.filter(({ id }) => !id.startsWith("case ") && !REQUIREMENTS.has(id)).map(({ id, file }) => `${id} in ${file}`)).toEqual([]);
});

test("docs/acceptance.md is what `pnpm requirements` writes", () => {
  expect(readFileSync(new URL("../../docs/acceptance.md", import.meta.url), "utf8")).toBe(acceptance());
});

test.each([
  ["a title", 'test("K1.3 used", () => {});', ["K1.3"]],
  ["a row of a table", 'test.each([["K2.1 a key", 1], [`K2.2 a value`, 2]])("%s", () => {});', ["K2.1", "K2.2"]],
  ["two ids", 'test("K1.3, U4 and P9 hold", () => {});', ["K1.3", "U4", "P9"]],
  ["a row and a case", 'test("K3.4 case 65: what it cost", () => {});', ["K3.4", "case 65"]],
  ["verifies", 'test("held", () => { verifies("A1", "A2"); });', ["A1", "A2"]],
  ["a comment", '// test("K1.3 used", () => {});\n/* verifies("A1") */', []],
  ["an id further back", 'test("used: K1.3", () => {}); call("A1");', []],
])("ids are found in %s", (_where, source, ids) => {
  expect(idsIn(source)).toEqual(ids);
});
