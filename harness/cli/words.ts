// Finds the command in a command line before it is parsed: a misspelt one must not be taken for arguments of the default one. Pure.
import { nearest } from "@iii/sdk";
import { usage } from "./output.ts";

const TAKE_A_VALUE = new Set(["--url", "-c", "--config"]);

/** The first word that is neither an option nor an option's value. */
function firstWord(args: readonly string[]): string | undefined {
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] ?? "";
    if (!arg.startsWith("-")) return arg;
    if (TAKE_A_VALUE.has(arg)) at += 1;
  }
  return undefined;
}

/** @throws BusError `usage` when the first word names no command */
export function checkCommand(args: readonly string[], commands: readonly string[]): void {
  const word = firstWord(args);
  if (word === undefined || commands.includes(word)) return;
  const meant = nearest(word, commands);
  throw usage(`unknown command '${word}'; ${meant === undefined ? `commands: ${commands.join(", ")}` : `did you mean '${meant}'?`}`);
}
