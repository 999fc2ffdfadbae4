// Keys and tokens on the command line: a token for a worker that a person starts, further operators, links with the page's key, watch mode.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { operatorAdd, workerToken } from "@iii/engine/contract";
import { BusError, shownAddress } from "@iii/sdk";
import { bundledFile, REPO } from "../boot/bundled.ts";
import type { Env } from "../boot/stack.ts";
import { runFile, withEngine } from "./connection.ts";
import { type Output, usage } from "./output.ts";

async function urlFor(url: string, name: string, keep: boolean): Promise<string> {
  const { token } = await withEngine(url, (iii) => iii.trigger(workerToken, { name, keep }));
  return `${shownAddress(url)}/as/${token}`;
}

/** `iii worker token NAME`: the address with which a process that a person starts is that entry. */
export async function printToken(url: string, output: Output, name: string): Promise<void> {
  const own = await urlFor(url, name, true);
  output.data({ name, url: own }, () => `III_URL=${own}`);
}

/** `iii operator add NAME`: a further key, told once. */
export async function addOperator(url: string, output: Output, name: string): Promise<void> {
  const { key } = await withEngine(url, (iii) => iii.trigger(operatorAdd, { name }));
  output.data({ name, key }, () => key);
}

/** `iii open PATH`: the page's address with the key of this start. @throws BusError `disconnected` when no engine of this folder runs. */
export function keyedLink(env: Env, path: string): string {
  const run = runFile(env);
  if (run === undefined) throw new BusError("disconnected", "no engine of this folder runs");
  return `${run.http_url}${path.startsWith("/") ? path : `/${path}`}#key=${run.page_key}`;
}

function watcher(name: string): { bin: string; args: string[] } {
  const ui = bundledFile(name, "ui/vite.config.ts");
  if (existsSync(ui)) return { bin: "vite", args: ["--config", ui, bundledFile(name, "ui")] };
  const entry = bundledFile(name, "src/index.ts");
  if (!existsSync(entry)) throw usage(`there is no worker workers/${name}`);
  return { bin: "tsx", args: ["watch", "--clear-screen=false", entry] };
}

/** `iii dev NAME`: runs one bundled worker in watch mode as its entry. Returns its exit code. */
export async function watch(url: string, env: Env, name: string): Promise<number> {
  const { bin, args } = watcher(name);
  const own = await urlFor(url, name, false);
  const child = spawn(join(REPO, "node_modules/.bin", bin), args, { stdio: "inherit", env: { ...env, III_URL: own } });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  return new Promise((done, fail) => {
    child.once("error", fail);
    child.once("exit", (code, signal) => done(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}
