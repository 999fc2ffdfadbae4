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
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
  stack = startStack({
    ...options,
    ending: ending.signal,
    note: (text) => void process.stderr.write(`${text}\n`),
    fatal: (error) => {
      process.stderr.write(`error: ${error.message}\n`);
      process.exit(1);
    },
  });
  await stack;
  await ended.promise;
}
