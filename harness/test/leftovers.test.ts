import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processSpawner } from "@iii/engine/supervisor";
import { silentLogger } from "@iii/sdk";
import { afterEach, beforeEach, expect, test } from "vitest";
import { endLeftovers, notingSpawner } from "../boot/leftovers.ts";
import { startStack } from "../boot/start.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "iii-left-"));
});
afterEach(() => rmSync(folder, { recursive: true }));
const file = () => join(folder, "processes.json");

/** A process that nothing but a signal ends. */
function sleeper(noted = file(), ours?: Promise<void>) {
  const ended = Promise.withResolvers<string | null>();
  const spec = { argv: ["sleep", "60"], env: { PATH: process.env["PATH"] ?? "" }, cwd: folder, ipc: false };
  const events = { exit: (info: { signal: string | null }) => ended.resolve(info.signal), line: () => undefined, message: () => undefined };
  const child = notingSpawner(processSpawner, noted, ours).spawn(spec, events);
  return { child, ended: ended.promise };
}

test("what an earlier engine left running is ended at the next start", async () => {
  const { ended } = sleeper();
  expect(endLeftovers(file())).toBe(1);
  expect(await ended).toBe("SIGKILL");
});

test("what runs before the file is ours is noted when it is, and not before", async () => {
  const earlier = sleeper();
  const ours = Promise.withResolvers<void>();
  const { ended } = sleeper(file(), ours.promise);
  expect(endLeftovers(file())).toBe(1);
  expect(await earlier.ended).toBe("SIGKILL");
  ours.resolve();
  await ours.promise;
  expect(endLeftovers(file())).toBe(1);
  expect(await ended).toBe("SIGKILL");
});

test("a pid that now belongs to another process is left alone", async () => {
  const { child, ended } = sleeper();
  writeFileSync(file(), JSON.stringify([{ pid: child.pid, born: "1" }]));
  expect(endLeftovers(file())).toBe(0);
  child.kill("SIGKILL");
  await ended;
});

test("no file, or a broken one, is nothing to do", () => {
  expect(endLeftovers(file())).toBe(0);
  writeFileSync(file(), "{");
  expect(endLeftovers(file())).toBe(0);
});

test("a start that fails because another engine runs leaves that engine's processes alone", async () => {
  const { child, ended } = sleeper();
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((listening) => taken.once("listening", listening));
  const address = taken.address();
  const port = typeof address === "object" ? address?.port : 0;
  const configPath = join(folder, "config.yaml");
  writeFileSync(configPath, `version: 1\nengine: { store: memory, data: ., port: ${port}, http: { port: 0 } }\nworkers: []\n`);
  const quiet = () => undefined;
  const starting = startStack({ configPath, env: process.env, log: silentLogger, out: quiet, note: quiet, fatal: quiet });
  await expect(starting).rejects.toMatchObject({ code: "port_in_use" });
  expect(endLeftovers(file())).toBe(1);
  child.kill("SIGKILL");
  await ended;
  taken.close();
});

test("a disk that takes no notes keeps nothing from starting or ending", async () => {
  const { child, ended } = sleeper(join(folder, "missing", "processes.json"));
  expect(child.pid).toBeGreaterThan(0);
  child.kill("SIGKILL");
  expect(await ended).toBe("SIGKILL");
});
