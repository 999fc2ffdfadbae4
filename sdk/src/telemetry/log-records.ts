// Log records as telemetry: what a worker logs, tied to the call it was logged in. Redacted before it leaves.
import { processAmbient } from "../client/ambient.ts";
import type { Logger } from "../log-port.ts";
import type { Clock } from "../ports.ts";
import { redact, redactText } from "../secrets.ts";
import { type TelemetryLink, telemetryFrame } from "./link.ts";
import { keyValues, nanoText } from "./otlp.ts";
import { parseTraceparent } from "./traceparent.ts";

const BATCH_MS = 100;
const SEVERITY = { info: 9, warn: 13, error: 17 } as const;
type Level = keyof typeof SEVERITY;

/** A log record as it may leave: redacted. */
export interface LogRecord {
  readonly service: string;
  readonly time_ms: number;
  readonly severity: number;
  readonly level: string;
  readonly body: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly trace_id: string | undefined;
  readonly span_id: string | undefined;
}

/** A logger that writes where `log` writes and also tells `told` each record. Debug records stay local. */
export function toldLogger(log: Logger, service: string, clock: Clock, told: (record: LogRecord) => void, bound: object = {}): Logger {
  const at = (level: Level) => (fields: object, message: string) => {
    log[level](fields, message);
    const context = parseTraceparent(processAmbient.current()?.traceparent);
    told({
      service,
      time_ms: clock.now(),
      severity: SEVERITY[level],
      level: level.toUpperCase(),
      body: redactText(message),
      attributes: redact({ ...bound, ...fields }) as Record<string, unknown>,
      trace_id: context?.trace_id,
      span_id: context?.span_id,
    });
  };
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => toldLogger(log.child(fields), service, clock, told, { ...bound, ...fields }),
  };
}

/** Sends log records to an engine in another process. */
export class LogWire {
  readonly #link: Pick<TelemetryLink, "send">;
  readonly #clock: Clock;
  #batch = new Map<string, object[]>();
  #timer: { cancel(): void } | undefined;

  constructor(link: Pick<TelemetryLink, "send">, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const batch = this.#batch;
    this.#batch = new Map();
    const resourceLogs = [...batch].map(([service, logRecords]) => ({
      resource: { attributes: keyValues({ "service.name": service }) },
      scopeLogs: [{ scope: { name: "@iii/sdk" }, logRecords }],
    }));
    if (resourceLogs.length > 0) this.#link.send(telemetryFrame("LOGS", JSON.stringify({ resourceLogs })));
  }

  put(record: LogRecord): void {
    const time = nanoText(record.time_ms);
    const encoded = {
      timeUnixNano: time,
      observedTimeUnixNano: time,
      severityNumber: record.severity,
      severityText: record.level,
      body: { stringValue: record.body },
      attributes: keyValues(record.attributes),
      traceId: record.trace_id,
      spanId: record.span_id,
    };
    const records = this.#batch.get(record.service);
    if (records === undefined) this.#batch.set(record.service, [encoded]);
    else records.push(encoded);
    this.#timer ??= this.#clock.setTimer(() => this.flush(), BATCH_MS);
  }
}
