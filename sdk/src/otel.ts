// A worker process's own OpenTelemetry SDK, for instrumentations and whatever else our recorder does not do. Loaded only by who imports this.
import { wsDialer } from "./client/ws.ts";
import { systemClock, systemRandom } from "./system.ts";
import { TelemetryLink } from "./telemetry/link.ts";
import { BusSpanProcessor, type NodeSettings } from "./telemetry/processor.ts";
import { SpanWire } from "./telemetry/wire.ts";

export interface InstrumentOptions extends Omit<NodeSettings, "spanProcessors" | "traceExporter" | "serviceName"> {
  /** `service.name` of its spans. */
  readonly service: string;
  /** The engine's address. Default: `III_URL`, else `ws://127.0.0.1:49134`. */
  readonly url?: string;
}

export interface Instrumented {
  /** Sends what is left and ends. */
  shutdown(): Promise<void>;
}

/**
 * Starts `@opentelemetry/sdk-node` in this process. Call it before `run`: its spans go to the engine's `/otel`, those made in a call
 * below that call's span. It exports nowhere else; the engine does.
 */
export async function instrument({ service, url, ...settings }: InstrumentOptions): Promise<Instrumented> {
  const { NodeSDK } = await import("@opentelemetry/sdk-node");
  const dialer = wsDialer(url ?? process.env["III_URL"] ?? "ws://127.0.0.1:49134");
  const link = new TelemetryLink({ dialer, clock: systemClock, random: systemRandom });
  const processor = new BusSpanProcessor(service, new SpanWire(link, systemClock), () => link.close());
  const sdk = new NodeSDK({
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
    ...settings,
    serviceName: service,
    spanProcessors: [processor],
  });
  sdk.start();
  return { shutdown: () => sdk.shutdown() };
}
