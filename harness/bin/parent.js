// Keeps the stack running: starts it in a child, hears its beats, and starts it again when it dies or hangs. Loads nothing but this file,
// so that it cannot fail with what it watches. JavaScript for the same reason as iii.js.
import { spawn } from "node:child_process";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];
const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };
/** Set for a stack that is to give every bundled worker a process of its own. */
const APART = "III_ISOLATE_BUNDLED";

/** Whether these arguments start the stack, under a parent. */
export function wantsParent(args) {
  if (args.some((arg) => ["--no-parent", "--help", "-h", "--version", "-V"].includes(arg))) return false;
  const takesValue = ["--url", "-c", "--config"];
  const word = args.find((arg, at) => !arg.startsWith("-") && !takesValue.includes(args[at - 1]));
  return word === undefined || word === "start";
}

const LIMITS = { silence_ms: 15_000, check_ms: 1_000, window_ms: 60_000, limit: 3, backoff_ms: 200 };

class Parent {
  #argv;
  #options;
  #crashes = [];
  #apart = false;
  #wasUp = false;
  #ending = false;
  #child;

  constructor(argv, options) {
    this.#argv = argv;
    this.#options = { ...LIMITS, ...options };
    for (const signal of SIGNALS) process.on(signal, () => this.#pass(signal));
  }

  start() {
    const { env, say, exit } = this.#options;
    const [command, ...args] = this.#argv;
    // A group of its own: Ctrl+C reaches us, and we pass it on once.
    const child = spawn(command, args, {
      env: this.#apart ? { ...env, [APART]: "1" } : env,
      stdio: ["inherit", "inherit", "inherit", "ipc"],
      detached: true,
    });
    this.#child = child;
    const check = this.#watch(child);
    child.on("error", (error) => {
      say(`the stack cannot be started: ${error.message}`);
      exit(1);
    });
    child.on("exit", (code, signal) => {
      clearInterval(check);
      this.#ended(code, signal);
    });
  }

  /** Ends a child that beat once and is silent now. */
  #watch(child) {
    const { env, say, silence_ms, check_ms } = this.#options;
    const isDebugged = this.#argv.some((arg) => arg.startsWith("--inspect")) || /--inspect/.test(env.NODE_OPTIONS ?? "");
    let beat;
    let checked = performance.now();
    child.on("message", (message) => {
      if (message === "up") this.#wasUp = true;
      beat = performance.now();
    });
    return setInterval(() => {
      const now = performance.now();
      // A check that comes late says that we slept, not that the child did.
      if (beat !== undefined && now - checked > 3 * check_ms) beat = now;
      checked = now;
      if (isDebugged || beat === undefined || now - beat < silence_ms) return;
      say(`the stack has not moved for ${Math.round((now - beat) / 1_000)} s: it is ended and started again`);
      child.kill("SIGKILL");
    }, check_ms);
  }

  #ended(code, signal) {
    const { exit, say } = this.#options;
    if (code === 0 || this.#ending || (!this.#wasUp && signal === null)) {
      exit(code ?? 128 + (NUMBERS[signal] ?? 0));
      return;
    }
    const delay = this.#crashed();
    say(`the stack ended with ${signal ?? `code ${code}`}; it is started again in ${delay / 1_000} s`);
    setTimeout(() => {
      if (this.#ending) exit(1);
      else this.start();
    }, delay);
  }

  /** Counts a crash; in how many ms the next start is. */
  #crashed() {
    const { say, window_ms, limit, backoff_ms } = this.#options;
    const now = performance.now();
    this.#crashes = [...this.#crashes.filter((at) => now - at < window_ms), now];
    const count = this.#crashes.length;
    if (count >= limit && !this.#apart) {
      this.#apart = true;
      const times = `${count} times within ${window_ms / 1_000} s`;
      say(`the stack died ${times}: every bundled worker gets a process of its own until the next start`);
    }
    return Math.min(10_000, backoff_ms * 2 ** (count - 1));
  }

  #pass(signal) {
    this.#ending = true;
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null) this.#child.kill(signal);
    else this.#options.exit(128 + NUMBERS[signal]);
  }
}

/**
 * Runs `argv` and starts it again when it dies after it was up once, or is silent for `silence_ms` after its first beat.
 * The child says "up" once it runs and "beat" each second, over the channel that also tells it when this process is gone.
 * `exit` gets the code of a child that ended in order, by a signal that we passed on, or before it was up.
 */
export function keep(argv, options) {
  new Parent(argv, options).start();
}
