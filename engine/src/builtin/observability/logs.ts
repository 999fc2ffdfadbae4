// Log records in memory, bounded; the oldest give way.
import type { z } from "zod";
import { cleanLog } from "./clean.ts";
import type { logsList, StoredLog } from "./contract.ts";

type Query = z.output<typeof logsList.input>;

const MAX_LOGS = 5_000;
const ANSI = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*[A-Za-z]`, "g");

export class LogStore {
  #logs: StoredLog[] = [];

  get count(): number {
    return this.#logs.length;
  }

  put(log: StoredLog): void {
    this.#logs.push(cleanLog({ ...log, body: log.body.replace(ANSI, "") }));
    if (this.#logs.length > MAX_LOGS * 1.1) this.#logs = this.#logs.slice(-MAX_LOGS);
  }

  clear(): void {
    this.#logs = [];
  }

  /** Newest first. Times are in ms. */
  list(query: Query): { logs: StoredLog[]; total: number } {
    const found = this.#logs.filter((log) => matches(log, query)).toSorted((a, b) => b.timestamp_unix_nano - a.timestamp_unix_nano);
    return { logs: found.slice(query.offset, query.offset + query.limit), total: found.length };
  }
}

function matches(log: StoredLog, query: Query): boolean {
  const ms = log.timestamp_unix_nano / 1e6;
  const { trace_id, span_id, severity_text, severity_min } = query;
  return (
    ms >= (query.start_time ?? -Infinity) &&
    ms <= (query.end_time ?? Infinity) &&
    (trace_id === undefined || log.trace_id === trace_id) &&
    (span_id === undefined || log.span_id === span_id) &&
    (severity_text === undefined || log.severity_text.toLowerCase() === severity_text.toLowerCase()) &&
    log.severity_number >= (severity_min ?? 0)
  );
}
