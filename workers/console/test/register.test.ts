import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testBus } from "@iii/engine/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { worker } from "../src/register.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "console-"));
});
afterEach(() => rm(dir, { recursive: true }));

const workers = async (bus: Awaited<ReturnType<typeof testBus>>) => {
  const { workers: all } = await bus.call<{ workers: { name: string | null }[] }>("engine::workers::list", {});
  return all.map((one) => one.name);
};

test("a console without a built page does not start, and says how to build it", async () => {
  await expect(testBus([{ worker, config: { dir: "missing" } }], { root: dir })).rejects.toMatchObject({
    code: "config_invalid",
    message: expect.stringContaining("node workers/console/build.ts"),
  });
});

test("with a page it becomes ready, and again after everything was killed", async () => {
  await writeFile(join(dir, "index.html"), "<!doctype html>");
  await using bus = await testBus([{ worker, config: { dir } }]);
  expect(await workers(bus)).toContain("console");
  await bus.crash();
  expect(await workers(bus)).toContain("console");
});
