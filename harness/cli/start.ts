// Keeps `iii start` alive: the first signal drains, the second ends at once, a failed store ends with an error.
import type { Logger } from "@iii/sdk";
import type { Env } from "../boot/stack.ts";
import { type Stack, startStack } from "../boot/start.ts";

export interface RunOptions {
  readonly configPath: string;
  readonly env: Env;
  readonly log: Logger;
  readonly out: (text: string) => void;
}

const BEAT_MS = 1_000;

/** Tells the parent process that the stack is up and moves, and hears when it is gone: then `stop`. Without one, does nothing. */
function beatFor(stop: () => void): void {
  if (process.send === undefined) return;
  process.on("disconnect", stop);
  process.channel?.unref();
  setInterval(() => process.connected && process.send?.("beat", undefined, undefined, () => undefined), BEAT_MS).unref();
}

function sayUp(): void {
  if (process.connected) process.send?.("up", undefined, undefined, () => undefined);
}

/** Resolves when the stack has been stopped by a signal. @throws BusError when it cannot start. */
export async function runUntilSignal(options: RunOptions): Promise<void> {
  const ended = Promise.withResolvers<void>();
  let stack: Promise<Stack> | undefined;
  const ending = new AbortController();
  const stop = () => {
    if (ending.signal.aborted) process.exit(130);
    ending.abort();
    process.stderr.write("stopping; once more ends it at once\n");
    Promise.resolve(stack)
      .then((running) => running?.stop())
      .then(ended.resolve, ended.reject);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  stack = startStack({
    ...options,
    ending: ending.signal,
    note: (text) => void process.stderr.write(`${text}\n`),
    fatal: (error) => {
      process.stderr.write(`error: ${error.message}\n`);
      process.exit(1);
    },
  });
  beatFor(() => {
    if (!ending.signal.aborted) stop();
  });
  await stack;
  sayUp();
  await ended.promise;
}
