// The permissions file on disk: read at start, read again after each change. Holds the rules in force; decides nothing.
import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { BusError, type Clock, type Logger, type Timer } from "@iii/sdk";
import { type FSWatcher, watch } from "chokidar";
import { describeFaults, loadRules } from "./load.ts";
import { NO_RULES, type RuleSet } from "./rules.ts";

const DEBOUNCE_MS = 100;
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Rules that follow a file. A broken change keeps the last good rules; a missing file means no rules, so everything asks. */
export class PermissionsFile {
  readonly #path: string;
  readonly #log: Logger;
  readonly #clock: Clock;
  #rules: RuleSet = NO_RULES;
  #watcher: FSWatcher | undefined;
  #timer: Timer | undefined;
  #reading: Promise<void> = Promise.resolve();
  #text: string | undefined;

  constructor(path: string, deps: { log: Logger; clock: Clock }) {
    this.#path = path;
    this.#log = deps.log;
    this.#clock = deps.clock;
  }

  get rules(): RuleSet {
    return this.#rules;
  }

  /** First read. @throws BusError `config_invalid` with file:line:column of every fault: a worker must not guess at rules. */
  async open(): Promise<void> {
    await this.#load("boot");
    this.#watch();
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#watcher?.close();
    await this.#reading;
  }

  /** Reads the file now; what the watcher does after a change. Never throws. */
  async reload(): Promise<void> {
    this.#reading = this.#reading
      .then(() => this.#load("reload"))
      .catch((cause) => {
        this.#log.error({ file: this.#path, error: String(cause) }, "the permissions file could not be read: the last good rules stay");
      });
    await this.#reading;
  }

  async #load(when: "boot" | "reload"): Promise<void> {
    const text = await this.#read();
    if (when === "reload" && text === this.#text) return;
    this.#text = text;
    if (text === undefined) {
      this.#rules = NO_RULES;
      this.#log.warn({ file: this.#path }, "there is no permissions file: every call asks");
      return;
    }
    const loaded = loadRules(text);
    if (loaded.warnings.length > 0) this.#log.warn({ file: this.#path }, describeFaults(this.#path, loaded.warnings));
    if (loaded.ok) {
      this.#rules = loaded.rules;
      this.#log.info({ file: this.#path, rules: loaded.rules.rules.length }, "permission rules in force");
      return;
    }
    const report = describeFaults(this.#path, loaded.faults);
    if (when === "boot") throw new BusError("config_invalid", report, { details: { file: this.#path, faults: loaded.faults } });
    this.#log.warn({ file: this.#path, faults: loaded.faults }, `the permissions file is broken, the last good rules stay:\n${report}`);
  }

  async #read(): Promise<string | undefined> {
    try {
      return UTF8.decode(await readFile(this.#path));
    } catch (cause) {
      if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
      throw new BusError("config_invalid", `${this.#path}: cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
        cause,
      });
    }
  }

  /** Watches the folder, because editors replace the file by renaming another one over it. The first report of what is there counts as a change: nothing may slip in before the watcher was ready. */
  #watch(): void {
    const folder = dirname(this.#path);
    const name = basename(this.#path);
    this.#watcher = watch(folder, { depth: 0, ignored: (path) => path !== folder && basename(path) !== name });
    this.#watcher.on("all", () => this.#changed());
    this.#watcher.on("error", (cause) =>
      this.#log.error({ file: this.#path, error: String(cause) }, "the permissions file is not watched"),
    );
  }

  #changed(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(() => void this.reload(), DEBOUNCE_MS);
  }
}
