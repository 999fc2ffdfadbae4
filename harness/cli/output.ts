// What commands print: data on stdout, everything else on stderr; one JSON document with --json. And the exit codes.
import { BusError, toBusError } from "@iii/sdk";

export interface Output {
  /** Data for people; with `--json` the value itself instead. */
  data(value: unknown, text: () => string): void;
  note(text: string): void;
  /** Prints an error and returns the exit code it means. */
  failed(thrown: unknown): number;
}

export interface Streams {
  out(text: string): void;
  err(text: string): void;
}

const CODES: Readonly<Record<string, number>> = {
  config_invalid: 6,
  disconnected: 3,
  port_in_use: 7,
  function_not_found: 4,
  NOT_FOUND: 4,
  session_not_found: 4,
  entry_not_found: 4,
  FORBIDDEN: 5,
  AUTH_ERROR: 5,
  gate_unavailable: 5,
  TIMEOUT: 124,
  usage: 2,
};

/** The exit code of an error. */
export function exitCode(error: BusError): number {
  return CODES[error.code] ?? 1;
}

const HINTS: Readonly<Record<string, string>> = {
  disconnected: "start the stack with: pnpm start",
  function_not_found: "see what is served: iii trigger engine::functions::list",
};

// Workers and models chose these texts: nothing in them may move the cursor or turn the reading direction.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

export function plain(text: string): string {
  return text.replace(UNSAFE, "");
}

export function createOutput(streams: Streams, options: { json: boolean; verbose: boolean }): Output {
  return {
    data(value, text) {
      if (options.json) streams.out(`${JSON.stringify(value)}\n`);
      else streams.out(`${plain(text())}\n`);
    },
    note: (text) => streams.err(`${plain(text)}\n`),
    failed(thrown) {
      const error = toBusError(thrown);
      const hint = HINTS[error.code];
      if (options.json) {
        streams.err(
          `${JSON.stringify({ code: error.code, message: error.message, hint: hint ?? null, details: error.details ?? null })}\n`,
        );
      } else {
        streams.err(`error: ${plain(error.message)}\n${hint === undefined ? "" : `hint: ${hint}\n`}`);
      }
      if (options.verbose && error.stack !== undefined) streams.err(`${plain(error.stack)}\n`);
      return exitCode(error);
    },
  };
}

/** Columns two spaces apart. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  return rows
    .map((row) => row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0))).join("  "))
    .join("\n");
}

/** A wrong use of the command: exit code 2. */
export function usage(message: string): BusError {
  return new BusError("usage", message);
}
