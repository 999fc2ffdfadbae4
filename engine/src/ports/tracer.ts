// Spans and log records of the engine's process, and what arrives from others. `builtin/observability` implements this.
import type { Logger, SpanSink } from "@iii/sdk";

export interface EngineSpan {
  /** W3C `traceparent` whose parent id is this span: hand it to whatever runs inside. */
  readonly traceparent: string;
  /** Ends the span. An error marks it failed. Ending twice does nothing. */
  end(error?: { code: string; message: string }): void;
}

export interface EngineTracer {
  /** Starts a span below `traceparent`, or a new trace without one. Baggage entries `iii.*` become attributes. */
  start(
    name: string,
    options: {
      traceparent?: string | undefined;
      baggage?: string | undefined;
      attributes?: Record<string, string>;
      links?: readonly string[];
      kind?: "server" | "internal" | "producer" | "consumer";
    },
  ): EngineSpan;
}

/** Records nothing and hands the caller's context on. */
export const noTracer: EngineTracer = {
  start: (_name, options) => ({ traceparent: options.traceparent ?? "", end() {} }),
};

/** Where telemetry that arrives on the wire goes. Never throws: a bad frame is counted and dropped. */
export interface Telemetry {
  /** One binary frame: four ASCII letters (`OTLP`, `LOGS`, `MTRC`) and OTLP JSON. `source` names the connection it came on. */
  ingest(frame: Uint8Array, source: string): void;
  /** The connection has ended: what it left open will not be ended by it. */
  closed(source: string): void;
  /** What records the spans of a worker in this process: straight into the store. Undefined when telemetry is switched off. */
  spans(worker: string): SpanSink | undefined;
  /** A logger whose records are stored too, for a worker in this process. */
  logger(log: Logger, worker: string): Logger;
}
