// The worker that the SDK's README shows, written down as it is printed there and run.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { processSpawner } from "@iii/engine/supervisor";
import { testBus } from "@iii/engine/testing";
import type { WorkerDefinition } from "@iii/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundledConfigs, lackingParts } from "../boot/bundled.ts";

const README = readFileSync(new URL("../../sdk/README.md", import.meta.url), "utf8");
// In a package that has the SDK and zod, as pnpm would link them for the new one.
const workers = mkdtempSync(fileURLToPath(new URL("./.readme-", import.meta.url)));
const folder = join(workers, "notes");

beforeAll(() => {
  mkdirSync(join(folder, "src"), { recursive: true });
  const block = (language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(README)?.[1] ?? "";
  writeFileSync(join(folder, "package.json"), block("json"));
  for (const part of block("ts").split(/^(?=\/\/ src\/)/m))
    writeFileSync(join(folder, /^\/\/ (\S+\.ts)/.exec(part)?.[1] ?? "src/none"), part);
});
afterAll(() => rmSync(workers, { recursive: true }));

test("U5 the folder lacks nothing, and its process starts and tells what it is", async () => {
  expect(lackingParts("notes", workers)).toBeUndefined();
  const lines: string[] = [];
  const spec = { argv: [process.execPath, join(folder, "src/index.ts"), "--manifest"], env: {}, cwd: folder, ipc: false };
  const code = await new Promise<number | null>((ended) => {
    processSpawner.spawn(spec, {
      exit: (info) => setImmediate(() => ended(info.code)),
      message: () => undefined,
      line: (_stream, text) => void lines.push(text),
    });
  });
  expect([code, lines.join("\n")]).toEqual([0, expect.stringContaining('"max_notes"')]);
  expect([...(await bundledConfigs(["notes"], workers)).keys()]).toEqual(["notes"]);
});

test("U5 it serves what it promises", async () => {
  const { worker } = (await import(pathToFileURL(join(folder, "src/register.ts")).href)) as { worker: WorkerDefinition };
  await using bus = await testBus([worker]);
  expect(await bus.call("notes::remember", { scope: "a", key: "k", text: "hello" })).toEqual({ notes: 1 });
  await expect(bus.call("notes::remember", { scope: "a" })).rejects.toMatchObject({ code: "invalid_payload" });
});
