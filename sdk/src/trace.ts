// Telemetry of one process beside the engine's: its spans and log records go to the engine, which alone keeps and exports them.
import type { SpanSink } from "./client/spans.ts";
import type { Logger } from "./log-port.ts";
import type { Dialer } from "./ports.ts";
import { systemClock, systemRandom } from "./system.ts";
import { TelemetryLink } from "./telemetry/link.ts";
import { LogWire, toldLogger } from "./telemetry/log-records.ts";
import { Recorder, type Surroundings } from "./telemetry/recorder.ts";
import { SpanWire } from "./telemetry/wire.ts";

export { type LogRecord, toldLogger } from "./telemetry/log-records.ts";

export interface TelemetryOptions {
  dialer: Dialer;
  env?: NodeJS.ProcessEnv;
}

export interface ProcessTelemetry {
  /** What records the spans of one worker; undefined when telemetry is off. */
  spans(worker: string): SpanSink | undefined;
  /** A logger that also sends its records to the engine, tied to the call they were logged in. */
  logger(log: Logger, worker: string): Logger;
  /** Serves `@opentelemetry/api` from here on. */
  serveApi(): Promise<void>;
  /** Sends what is left and ends. */
  stop(): Promise<void>;
}

const OFF: ProcessTelemetry = { spans: () => undefined, logger: (log) => log, serveApi: async () => {}, stop: async () => {} };
const isOff = (value: string | undefined): boolean => value === "false" || value === "0";
const isOn = (value: string | undefined): boolean => value === "true" || value === "1";

export interface TelemetrySwitches {
  /** False with `OTEL_ENABLED=false` or `OTEL_SDK_DISABLED=true`. */
  readonly enabled: boolean;
  /** False with `III_DISABLE_TRACE_PAYLOADS=1`. */
  readonly payloads: boolean;
}

export function telemetrySwitches(env: NodeJS.ProcessEnv): TelemetrySwitches {
  return {
    enabled: !isOff(env["OTEL_ENABLED"]) && !isOn(env["OTEL_SDK_DISABLED"]),
    payloads: !isOn(env["III_DISABLE_TRACE_PAYLOADS"]),
  };
}

/** The API takes 15 to 40 ms to load, so a process says when. */
export async function loadSurroundings(): Promise<Surroundings> {
  return (await import("./telemetry/api.ts")).surroundings();
}

/** Starts telemetry unless the environment switches it off. Call it once per process. */
export function startTelemetry({ dialer, env = process.env }: TelemetryOptions): ProcessTelemetry {
  const { enabled, payloads } = telemetrySwitches(env);
  if (!enabled) return OFF;
  const clock = systemClock;
  const link = new TelemetryLink({ dialer, clock, random: systemRandom });
  const outlet = new SpanWire(link, clock);
  const logs = new LogWire(link, clock);
  let around: Surroundings | undefined;
  return {
    spans: (service) => new Recorder({ service, outlet, clock, random: systemRandom, payloads, around: () => around }),
    logger: (log, worker) => toldLogger(log, worker, clock, (record) => logs.put(record)),
    async serveApi() {
      around = await loadSurroundings();
    },
    async stop() {
      logs.flush();
      outlet.flush();
      await link.close();
    },
  };
}
