// Log records as telemetry: what a worker logs, tied to the call it was logged in. Redacted before it leaves.
import { processAmbient } from "../client/ambient.ts";
import type { Logger } from "../log-port.ts";
import type { Clock } from "../ports.ts";
import { redact, redactText } from "../secrets.ts";
import { type TelemetryLink, telemetryFrame } from "./link.ts";
import { keyValues } from "./otlp.ts";
import { parseTraceparent } from "./traceparent.ts";

const BATCH_MS = 100;
const SEVERITY = { info: 9, warn: 13, error: 17 } as const;
type Level = keyof typeof SEVERITY;

export class LogRecords {
  readonly #link: TelemetryLink;
  readonly #clock: Clock;
  #batch = new Map<string, object[]>();
  #timer: { cancel(): void } | undefined;

  constructor(link: TelemetryLink, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  /** A logger that writes where `log` writes and sends the record too. Debug records stay local. */
  wrap(log: Logger, service: string, bound: object = {}): Logger {
    const at = (level: Level) => (fields: object, message: string) => {
      log[level](fields, message);
      this.#add(service, level, { ...bound, ...fields }, message);
    };
    return {
      debug: (fields, message) => log.debug(fields, message),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      child: (fields) => this.wrap(log.child(fields), service, { ...bound, ...fields }),
    };
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

  #add(service: string, level: Level, fields: object, message: string): void {
    const time = `${this.#clock.now()}000000`;
    const context = parseTraceparent(processAmbient.current()?.traceparent);
    const record = {
      timeUnixNano: time,
      observedTimeUnixNano: time,
      severityNumber: SEVERITY[level],
      severityText: level.toUpperCase(),
      body: { stringValue: redactText(message) },
      attributes: keyValues(redact(fields) as Record<string, unknown>),
      ...(context === undefined ? {} : { traceId: context.trace_id, spanId: context.span_id }),
    };
    this.#batch.set(service, [...(this.#batch.get(service) ?? []), record]);
    this.#timer ??= this.#clock.setTimer(() => this.flush(), BATCH_MS);
  }
}
