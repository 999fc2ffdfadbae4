// A short-lived connection of the command line to a running engine.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { BusError, connect, type Iii } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { configPath } from "../boot/config-file.ts";
import type { Env } from "../boot/stack.ts";

const OPEN_MS = 3_000;

function fromRunFile(env: Env): string | undefined {
  // As the engine does: relative to the folder of the configuration.
  const folder = resolve(dirname(configPath(undefined, env)), env["III_DATA_DIR"] || ".iii");
  try {
    const facts: unknown = JSON.parse(readFileSync(join(folder, "engine.json"), "utf8"));
    return typeof facts === "object" && facts !== null && "url" in facts ? String(facts.url) : undefined;
  } catch {
    return undefined;
  }
}

/** `--url`, else `III_URL`, else what the engine in this folder wrote down, else the usual port. */
export function engineUrl(flag: string | undefined, env: Env): string {
  return flag ?? env["III_URL"] ?? fromRunFile(env) ?? `ws://127.0.0.1:${env["III_PORT"] ?? "49134"}`;
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
  const late = setTimeout(() => done.reject(new BusError("disconnected", `cannot reach the engine at ${url}`)), OPEN_MS);
  await done.promise.finally(() => {
    clearTimeout(late);
    stopWatching();
  });
}
