// The process's logger: pino, one JSON line per record on stderr, secrets removed before anything is written.
import { pino } from "pino";
import type { Logger } from "./log-port.ts";
import { redact, redactText } from "./secrets.ts";

export interface LoggerOptions {
  name?: string;
  /** Default: `III_LOG_LEVEL`, else `info`. */
  level?: string;
  /** Default: standard error. */
  destination?: { write(line: string): void };
}

export function createLogger(options: LoggerOptions = {}): Logger {
  const level = options.level ?? process.env["III_LOG_LEVEL"] ?? "info";
  const base = pino(
    {
      level,
      base: { pid: process.pid, ...(options.name === undefined ? {} : { name: options.name }) },
      formatters: { level: (label) => ({ level: label }), log: (record) => redact(record) as Record<string, unknown> },
    },
    options.destination ?? pino.destination({ dest: 2, sync: true }),
  );
  return adapt(base);
}

function adapt(base: pino.Logger): Logger {
  return {
    debug: (fields, message) => base.debug(fields, redactText(message)),
    info: (fields, message) => base.info(fields, redactText(message)),
    warn: (fields, message) => base.warn(fields, redactText(message)),
    error: (fields, message) => base.error(fields, redactText(message)),
    child: (fields) => adapt(base.child(redact(fields) as Record<string, unknown>)),
  };
}
