// A short-lived connection of the command line to a running engine.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { BusError, connect, type Iii } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { z } from "zod";
import { configPath } from "../boot/config-file.ts";
import { readOperatorKey } from "../boot/keys.ts";
import type { Env } from "../boot/stack.ts";

const OPEN_MS = 3_000;

const RunFile = z.object({ url: z.string(), http_url: z.string(), page_key: z.string() });
export type RunFile = z.infer<typeof RunFile>;

function dataFolder(env: Env): string {
  // As the engine does: relative to the folder of the configuration.
  return resolve(dirname(configPath(undefined, env)), env["III_DATA_DIR"] || ".iii");
}

/** What the engine of this folder wrote down about itself; undefined when none runs. */
export function runFile(env: Env): RunFile | undefined {
  try {
    return RunFile.safeParse(JSON.parse(readFileSync(join(dataFolder(env), "engine.json"), "utf8"))).data;
  } catch {
    return undefined;
  }
}

/** The address with the operator's key, where it is the engine of this folder, whose key lies beside its data. */
function withKey(url: string, env: Env): string {
  const base = url.replace(/\/+$/, "");
  const key = runFile(env)?.url === base ? readOperatorKey(dataFolder(env)) : undefined;
  return key === undefined ? url : `${base}/as/${key}`;
}

/** `--url`, else `III_URL`, else what the engine in this folder wrote down, else the usual port. */
export function engineUrl(flag: string | undefined, env: Env): string {
  return withKey(flag ?? env["III_URL"] ?? runFile(env)?.url ?? `ws://127.0.0.1:${env["III_PORT"] ?? "49134"}`, env);
}

/** Runs `work` on a connection and closes it. @throws BusError `disconnected` when nobody listens. */
export async function withEngine<T>(url: string, work: (iii: Iii) => Promise<T>): Promise<T> {
  const iii = connect({ dialer: wsDialer(url) });
  try {
    await opened(iii, url);
    return await work(iii);
  } finally {
    await iii.close({ drain_ms: 0 });
  }
}

async function opened(iii: Iii, url: string): Promise<void> {
  if (iii.state === "connected") return;
  const done = Promise.withResolvers<void>();
  const stopWatching = iii.onState((state) => {
    if (state === "connected") done.resolve();
  });
  const late = setTimeout(
    () => done.reject(new BusError("disconnected", `cannot reach the engine at ${url.replace(/\/as\/[^/]*/, "")}`)),
    OPEN_MS,
  );
  await done.promise.finally(() => {
    clearTimeout(late);
    stopWatching();
  });
}
