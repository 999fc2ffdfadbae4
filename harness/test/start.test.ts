import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "@iii/sdk";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startStack } from "../boot/start.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "iii-start-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a stack that is to end waits for no worker, and what it keeps is its owner's alone", async () => {
  const configPath = join(folder, "config.yaml");
  const worker = `{ name: silent, command: [sleep, "60"] }`;
  writeFileSync(configPath, `version: 1\nengine: { store: memory, data: data, port: 0, http: { port: 0 } }\nworkers: [${worker}]\n`);
  const ending = new AbortController();
  const said: string[] = [];
  const note = (text: string) => void said.push(text);
  const fatal = (error: Error) => note(error.message);
  const starting = startStack({ configPath, env: process.env, log: silentLogger, out: note, note, fatal, ending: ending.signal });
  ending.abort();
  const stack = await starting;
  await stack.stop();
  expect(said.join("")).not.toContain("iii harness");
  expect(statSync(join(folder, "data")).mode & 0o777).toBe(0o700);
}, 5_000);
