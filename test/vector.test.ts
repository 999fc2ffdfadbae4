// What runs is what stands in the source that people read.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { compiled } from "../tools/vector.ts";

test("the compiled vector scan is its source, compiled: else run `node tools/vector.ts`", async () => {
  expect(readFileSync(new URL("../sdk/src/protocol/vector-wasm.ts", import.meta.url), "utf8")).toBe(await compiled());
});
