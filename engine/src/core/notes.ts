// Notes about what a connection did wrong: at most one a second for each, so that nobody can flood the log.
import type { Connection } from "./connection.ts";
import type { Effect } from "./effects.ts";

const EVERY_MS = 1_000;

/** Says that something of this connection was refused; what is left out in between is counted. */
export function noteRefusal(conn: Connection, now: number, message: string, fields: Record<string, unknown>, out: Effect[]): void {
  const { refusals } = conn;
  if (now - refusals.noted_at < EVERY_MS) {
    refusals.unnoted += 1;
    return;
  }
  const more = refusals.unnoted === 0 ? {} : { more_before: refusals.unnoted };
  refusals.noted_at = now;
  refusals.unnoted = 0;
  out.push({ type: "note", level: "warn", message, fields: { worker_id: conn.id, name: conn.announced?.name, ...fields, ...more } });
}
