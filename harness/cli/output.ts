// What commands print: data on stdout, everything else on stderr; one JSON document with --json. And the exit codes.
import { plain, plainJson } from "@iii/contracts/visible";
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

/** Which codes end with which exit code; every other one with 1. */
const CODES: Readonly<Record<number, readonly string[]>> = {
  2: ["usage", "invalid_payload", "deserialization_error", "INVALID_ARGUMENTS", "id_invalid"],
  3: ["disconnected"],
  4: [
    "function_not_found",
    "NOT_FOUND",
    "session_not_found",
    "entry_not_found",
    "trigger_type_not_found",
    "model_unknown",
    "provider_unknown",
  ],
  5: ["FORBIDDEN", "AUTH_ERROR", "gate_unavailable", "credential_missing"],
  6: ["config_invalid"],
  7: ["port_in_use", "data_in_use", "session_busy", "already_decided", "args_changed", "function_owned"],
  124: ["TIMEOUT"],
  130: ["cancelled"],
};

/** The exit code of an error. */
export function exitCode(error: BusError): number {
  const found = Object.entries(CODES).find(([, codes]) => codes.includes(error.code));
  return found === undefined ? 1 : Number(found[0]);
}

const HINTS: Readonly<Record<string, string>> = {
  disconnected: "start the stack with: pnpm start",
  FORBIDDEN: "the operator's key lies in the engine's data folder: run this beside config.yaml, or set III_DATA_DIR",
  function_not_found: "see what is served: iii trigger engine::functions::list",
};

export function createOutput(streams: Streams, options: { json: boolean; verbose: boolean }): Output {
  return {
    data(value, text) {
      if (options.json) streams.out(`${plainJson(value)}\n`);
      else streams.out(`${plain(text())}\n`);
    },
    note: (text) => streams.err(`${plain(text)}\n`),
    failed(thrown) {
      const error = toBusError(thrown);
      const hint = HINTS[error.code];
      if (options.json) {
        const { code, message, details = null } = error;
        streams.err(`${plainJson({ code, message, hint: hint ?? null, details })}\n`);
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
