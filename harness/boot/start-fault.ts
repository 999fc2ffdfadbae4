// Why a worker's module could not be loaded or started, in one line with its place: file:line:column. Pure.
import { BusError } from "@iii/sdk";

const HEAD = /^(?:file:\/\/)?(\/[^\n]*?):(\d+)\n/;
const CARET = /^[ \t]*\^+[ \t]*$/m;
const FRAME = /(?:\(|at (?:async )?)(?:file:\/\/)?(\/[^\s()]+):(\d+):(\d+)\)?/;

/** Node puts the place of what it cannot parse before the error's name, with a caret below the column. */
function parsePlace(stack: string): string | undefined {
  const [, file, line] = HEAD.exec(stack) ?? [];
  if (file === undefined) return undefined;
  const caret = CARET.exec(stack)?.[0].indexOf("^");
  return `${file}:${line}${caret === undefined ? "" : `:${caret + 1}`}`;
}

/** Where an error of the worker's own code was thrown; undefined for one of Node's own loader. */
function throwPlace(stack: string): string | undefined {
  const first = stack.split("\n").find((line) => line.trimStart().startsWith("at "));
  const [, file, line, column] = first === undefined ? [] : (FRAME.exec(first) ?? []);
  return file === undefined || file.includes("/node_modules/") ? undefined : `${file}:${line}:${column}`;
}

/** @param root what paths are shortened by */
export function startFault(thrown: unknown, root: string): string {
  if (!(thrown instanceof Error)) return String(thrown);
  // It was thrown with words for people.
  if (thrown instanceof BusError) return thrown.message;
  const stack = thrown.stack ?? "";
  const place = parsePlace(stack) ?? throwPlace(stack);
  const base = root.endsWith("/") ? root : `${root}/`;
  const text = place === undefined ? thrown.message : `${place}: ${thrown.message}`;
  return text.replaceAll(base, "");
}
