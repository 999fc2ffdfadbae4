// `iii start`: the engine, its listeners and every worker that config.yaml names; ends them all in order.
import { rm, writeFile } from "node:fs/promises";
import { flushCompileCache } from "node:module";
import { join, resolve } from "node:path";
import type { EntryRights } from "@iii/engine";
import { createEngine, defaultBuiltins, type Engine, openStore, type Store, storePlace, upgradeHandler } from "@iii/engine";
import type { StackConfig } from "@iii/engine/config";
import { type HttpBuiltin, httpBuiltin, type Servers, serve } from "@iii/engine/server";
import { type Plan, type PlanSource, processSpawner, type SupervisorBuiltin, supervisorBuiltin } from "@iii/engine/supervisor";
import { BusError, type Clock, type Logger, sleep, systemClock, systemRandom, type Timer } from "@iii/sdk";
import { banner, isSettled, settledText } from "./banner.ts";
import { bundledFile } from "./bundled.ts";
import { watchConfig } from "./config-file.ts";
import { openDataFolder } from "./data-folder.ts";
import { newKey, operatorKey, pageKey, tokenStore } from "./keys.ts";
import { endLeftovers, notingSpawner } from "./leftovers.ts";
import { linkedSpawner } from "./linked-host.ts";
import { logLine } from "./log-line.ts";
import { bannerLines, type ShownLine, shownLines } from "./manifest.ts";
import { buildPages } from "./pages.ts";
import { readRights } from "./rights.ts";
import { type Env, faultLines, type PlanContext, planOf, readStack } from "./stack.ts";
import { VERSION } from "./version.ts";

const BANNER_WAIT_MS = 15_000;
const LOOK_MS = 200;
/** Says where the engine is, for as long as it runs. */
const RUN_FILE = "engine.json";

export interface StartOptions {
  readonly configPath: string;
  readonly env: Env;
  readonly log: Logger;
  readonly out: (text: string) => void;
  /** Lines of workers and notices, for people. */
  readonly note: (text: string) => void;
  /** The store has failed: nothing is acknowledged any more and the process should end. */
  readonly fatal: (error: BusError) => void;
  /** Aborted when the stack is to end although it is still starting: no worker is waited for any more. */
  readonly ending?: AbortSignal;
}

/** A running stack. */
export interface Stack {
  readonly url: string;
  readonly httpUrl: string;
  /** Drains, then ends every process. */
  stop(): Promise<void>;
}

/** @throws BusError `config_invalid` with every fault. */
async function readConfig(options: StartOptions): Promise<{ config: StackConfig; root: string }> {
  const read = await readStack(options.configPath, options.env);
  if (read.ok) return read;
  const faults = faultLines(read);
  throw new BusError("config_invalid", faults.join("\n"), { details: { faults } });
}

function planSource(options: StartOptions, context: () => PlanContext, entries: Map<string, EntryRights>): PlanSource {
  return {
    read: async () => {
      const read = await readStack(options.configPath, options.env);
      if (read.ok) readRights(entries, read.config);
      return read.ok ? { ok: true, plan: planOf(read.config, context()) } : { ok: false, faults: faultLines(read) };
    },
  };
}

interface Parts {
  readonly engine: Engine;
  readonly http: HttpBuiltin;
  readonly supervisor: SupervisorBuiltin;
  readonly store: Store;
  readonly dataFolder: string;
  /** Opens the page as the operator, until this engine ends. */
  readonly page_key: string;
  /** The file that names the processes that run on this data. */
  readonly noted: string;
  /** Call it when the notes of an earlier engine have been dealt with. */
  readonly notesAreOurs: () => void;
}

interface Where {
  context: PlanContext;
  plan: Plan | undefined;
}

function assemble(options: StartOptions, config: StackConfig, where: Where): Parts {
  const dataFolder = resolve(where.context.root, config.engine.data);
  openDataFolder(dataFolder);
  const entries = new Map<string, EntryRights>();
  readRights(entries, config);
  const noted = join(dataFolder, "processes.json");
  const ours = Promise.withResolvers<void>();
  const processes = notingSpawner(processSpawner, noted, ours.promise);
  const supervisor: SupervisorBuiltin = supervisorBuiltin({
    expected: config.workers.filter((entry) => entry.enabled).map((entry) => entry.name),
    source: planSource(options, () => where.context, entries),
    spawner: config.engine.bundled === "process" ? processes : linkedSpawner(() => engine, processes),
    onLine: (name, _stream, text) => options.note(logLine(name, text)),
  });
  const http = httpBuiltin({
    max_body_bytes: config.engine.limits.max_body_bytes,
    timeout_ms: config.engine.limits.http_timeout_ms,
    version: VERSION,
    health: () => supervisor.health(),
    auth: config.engine.auth,
  });
  const store = openStore(config.engine.store, dataFolder, (error) => engine.host.fatal(error));
  const engine: Engine = createEngine({
    config: config.engine,
    deps: { clock: systemClock, random: systemRandom, store, log: options.log, fatal: options.fatal, tokens: tokenStore(dataFolder) },
    entries,
    builtins: [...defaultBuiltins(config.engine).filter((builtin) => builtin.name !== http.name), http, supervisor],
  });
  const page_key = pageKey(join(dataFolder, RUN_FILE));
  engine.tokens.add(operatorKey(dataFolder), { kind: "operator", name: "operator" });
  engine.tokens.add(page_key, { kind: "operator", name: "page" });
  return { engine, http, supervisor, store, dataFolder, page_key, noted, notesAreOurs: ours.resolve };
}

/** Call once store and ports are ours: until then, what is noted may belong to an engine that runs. */
function takeOverProcesses({ noted, notesAreOurs }: Parts, note: (text: string) => void): void {
  const left = endLeftovers(noted);
  notesAreOurs();
  // However this process ends, nothing that it started stays.
  process.once("exit", () => endLeftovers(noted));
  if (left > 0) note(`ended ${left} process${left === 1 ? "" : "es"} that an earlier engine had left running`);
}

/** Waits until `done`, or until time is up. */
async function until(done: () => boolean, clock: Clock, ms: number): Promise<void> {
  const end = clock.monotonic() + ms;
  while (!done() && clock.monotonic() < end) await sleep(clock, 20);
}

async function writeRunFile(folder: string, facts: object): Promise<() => Promise<void>> {
  const file = join(folder, RUN_FILE);
  await writeFile(file, `${JSON.stringify(facts, null, 2)}\n`, { mode: 0o600 });
  return () => rm(file, { force: true });
}

async function announceEdits(options: StartOptions): Promise<() => Promise<void>> {
  return watchConfig(options.configPath, () => {
    readStack(options.configPath, options.env).then(
      (read) => {
        if (read.ok) options.note("config.yaml changed and is valid; apply it with: iii worker restart|start|stop <name>");
        else options.note(`config.yaml changed and is broken; what runs stays as it is:\n${faultLines(read).join("\n")}`);
      },
      (error: unknown) => options.note(`config.yaml cannot be read: ${String(error)}`),
    );
  });
}

/** What the workers that are ready say in their manifests; what replaces a bundled worker is spoken for by the one that it replaces. */
function saidByWorkers(config: StackConfig, root: string, ready: readonly string[], urls: Urls): ShownLine[] {
  const speaking = config.workers.filter((entry) => entry.enabled && ready.includes(entry.name));
  return speaking.flatMap((entry) => {
    const folder = entry.path === undefined ? bundledFile(entry.name, "") : resolve(root, entry.path);
    return shownLines(bannerLines(folder), { http_url: urls.httpUrl, bus_url: urls.url, page_key: urls.pageKey, config: entry.config });
  });
}

interface Urls {
  readonly pageKey: string;
  readonly url: string;
  readonly httpUrl: string;
}

/** Shows the banner once the stack has settled or time is up; then says how it settled, until every worker is ready. */
async function tell(options: StartOptions, config: StackConfig, root: string, parts: Parts, urls: Urls): Promise<void> {
  const { supervisor, dataFolder } = parts;
  const isEnding = () => options.ending?.aborted === true;
  await until(() => isSettled(supervisor.health()) || isEnding(), systemClock, BANNER_WAIT_MS);
  if (isEnding()) return;
  const health = supervisor.health();
  const facts = { version: VERSION, busUrl: urls.url, httpUrl: urls.httpUrl, place: storePlace(config.engine.store, dataFolder), health };
  options.out(banner({ ...facts, lines: saidByWorkers(config, root, health.workers, urls) }));
}

/** Says once how the stack settled when the banner could not, and once that every worker is ready. Returns the end of the watch. */
function announceSettling(options: StartOptions, supervisor: SupervisorBuiltin, clock: Clock): () => Promise<void> {
  let timer: Timer | undefined;
  let told = isSettled(supervisor.health());
  const look = () => {
    const health = supervisor.health();
    const done = health.status === "ready";
    if (done || (!told && isSettled(health))) {
      told = true;
      options.note(settledText(health));
    }
    timer = done ? undefined : clock.setTimer(look, LOOK_MS);
  };
  if (supervisor.health().status !== "ready") timer = clock.setTimer(look, LOOK_MS);
  return async () => timer?.cancel();
}

/** What the command line reads of a running engine. */
function factsOf({ supervisor, page_key }: Parts, url: string, http_url: string): object {
  return { pid: process.pid, host_pid: supervisor.hostPid, url, http_url, page_key };
}

/** Each worker's own address of the bus: its token stands in it, and ends with this engine. */
function tokenedUrls(engine: Engine, url: string): (name: string) => string {
  const urls = new Map<string, string>();
  return (name) => {
    const known = urls.get(name);
    if (known !== undefined) return known;
    const token = newKey();
    engine.tokens.add(token, { kind: "entry", name });
    const own = `${url}/as/${token}`;
    urls.set(name, own);
    return own;
  };
}

function hostOf(config: StackConfig): string {
  return config.engine.host.includes(":") ? `[${config.engine.host}]` : config.engine.host;
}

/** The host loads its workers while the engine reads its store and opens its ports. */
function prepareHost(supervisor: SupervisorBuiltin, { host, workers }: Plan): void {
  const modules = workers.flatMap(({ bundled }) => (bundled === undefined ? [] : [bundled.module]));
  if (modules.length > 0) supervisor.prepare(host, modules);
}

/** Boots the stack. @throws BusError `config_invalid`, `port_in_use`, or what the store says; nothing is left running then. */
export async function startStack(options: StartOptions): Promise<Stack> {
  const { config, root } = await readConfig(options);
  const built = buildPages(config, options.note);
  const where: Where = { context: { root, urlOf: () => "", env: options.env }, plan: undefined };
  const parts = assemble(options, config, where);
  const undo: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  undo.push(() => parts.store.close());
  undo.push(() => parts.supervisor.halt());
  try {
    prepareHost(parts.supervisor, planOf(config, where.context));
    await parts.engine.start();
    undo.push(() => parts.engine.stop());
    const servers: Servers = await serve({
      config: config.engine,
      front: parts.http.front,
      principalOf: (token) => parts.engine.tokens.find(token),
      upgrades: (prefix) => upgradeHandler(parts.engine, { prefix, max_frame_bytes: config.engine.limits.max_frame_bytes }),
    });
    undo.push(() => servers.close());
    // Workers that others run have their time, too: what they were called for ends before their sockets do.
    undo.push(() => parts.engine.drain());
    takeOverProcesses(parts, options.note);
    const [url, httpUrl] = [`ws://${hostOf(config)}:${servers.port}`, `http://${hostOf(config)}:${servers.httpPort}`];
    where.context = { ...where.context, urlOf: tokenedUrls(parts.engine, url) };
    await built;
    parts.supervisor.launch(planOf(config, where.context));
    // First of all when it ends: workers drain while the bus is there.
    undo.push(() => parts.supervisor.halt());
    undo.push(await announceEdits(options));
    undo.push(await writeRunFile(parts.dataFolder, factsOf(parts, url, httpUrl)));
    await tell(options, config, root, parts, { url, httpUrl, pageKey: parts.page_key });
    undo.push(announceSettling(options, parts.supervisor, systemClock));
    flushCompileCache();
    return { url, httpUrl, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
