// OpenTelemetry for one process: started once, before the first connection. The engine never loads this.

import { context, isSpanContextValid, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { NodeSDK } from "@opentelemetry/sdk-node";
import { type ActiveSpan, type SpanSink, type SpanStart, unrecorded } from "./client/spans.ts";
import type { Logger } from "./log-port.ts";
import type { Dialer } from "./ports.ts";
import { redactText } from "./secrets.ts";
import { systemClock, systemRandom } from "./system.ts";
import { SERVICE, SpanExporter } from "./telemetry/exporter.ts";
import { LightSpans } from "./telemetry/light.ts";
import { TelemetryLink } from "./telemetry/link.ts";
import { LogRecords } from "./telemetry/log-records.ts";
import { formatTraceparent, parseTraceparent } from "./telemetry/traceparent.ts";

export interface TelemetryOptions {
  /** The process's own name; each worker in it has its own (see `spans`). */
  service: string;
  dialer: Dialer;
  env?: NodeJS.ProcessEnv;
}

export interface ProcessTelemetry {
  /** What records the spans of one worker; undefined when telemetry is off. */
  spans(worker: string): SpanSink | undefined;
  /** A logger that also sends its records to the engine, tied to the call they were logged in. */
  logger(log: Logger, worker: string): Logger;
  /** Loads the OpenTelemetry SDK: once the process has nothing more urgent to do. @throws Error when it cannot be loaded. */
  load(): Promise<void>;
  /** Sends what is left and ends. */
  stop(): Promise<void>;
}

const OFF: ProcessTelemetry = { spans: () => undefined, logger: (log) => log, load: async () => {}, stop: async () => {} };
const isOff = (value: string | undefined): boolean => value === "false" || value === "0";
const isOn = (value: string | undefined): boolean => value === "true" || value === "1";

/**
 * Starts telemetry unless `OTEL_ENABLED=false`. Call it once per process. The OpenTelemetry SDK costs a third of a second to load, so it
 * is loaded when `load` says so; until then spans are recorded without it.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<ProcessTelemetry> {
  const env = options.env ?? process.env;
  if (isOff(env["OTEL_ENABLED"]) || isOn(env["OTEL_SDK_DISABLED"])) return OFF;
  const { service, dialer } = options;
  const link = new TelemetryLink({ dialer, clock: systemClock, random: systemRandom });
  const exporter = new SpanExporter({ link, service, collector: collectorUrl(env), headers: collectorHeaders(env) });
  const logs = new LogRecords(link, systemClock);
  const payloads = !isOn(env["III_DISABLE_TRACE_PAYLOADS"]);
  let sdk: Promise<NodeSDK> | undefined;
  let tracer: Tracer | undefined;
  const early = (worker: string) =>
    new LightSpans({ service: worker, dialer, payloads, send: (json, running) => void exporter.write(json, running) });
  return {
    spans: (worker) => new ProcessSpans(early(worker), () => tracer && new OtelSpans(tracer, worker, payloads)),
    logger: (log, worker) => logs.wrap(log, worker),
    async load() {
      sdk ??= startSdk(service, exporter);
      await sdk;
      tracer = trace.getTracer("@iii/sdk");
    },
    async stop() {
      logs.flush();
      await (await sdk)?.shutdown();
      await link.close();
    },
  };
}

async function startSdk(serviceName: string, exporter: SpanExporter): Promise<NodeSDK> {
  const { NodeSDK } = await import("@opentelemetry/sdk-node");
  const sdk = new NodeSDK({
    serviceName,
    spanProcessors: [exporter],
    autoDetectResources: false,
    instrumentations: [],
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  return sdk;
}

/** The spans of one worker: by OpenTelemetry as soon as that is loaded. */
class ProcessSpans implements SpanSink {
  readonly payloads: boolean;
  readonly #early: SpanSink;
  readonly #loaded: () => SpanSink | undefined;
  #late: SpanSink | undefined;

  constructor(early: SpanSink, loaded: () => SpanSink | undefined) {
    this.payloads = early.payloads;
    this.#early = early;
    this.#loaded = loaded;
  }

  start(spec: SpanStart): ActiveSpan {
    this.#late ??= this.#loaded();
    return (this.#late ?? this.#early).start(spec);
  }

  active(): string | undefined {
    return this.#late?.active?.();
  }
}

function collectorUrl(env: NodeJS.ProcessEnv): string | undefined {
  const own = env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
  if (own !== undefined && own !== "") return own;
  const base = env["OTEL_EXPORTER_OTLP_ENDPOINT"];
  return base === undefined || base === "" ? undefined : `${base.replace(/\/+$/, "")}/v1/traces`;
}

function collectorHeaders(env: NodeJS.ProcessEnv): Record<string, string> {
  const text = env["OTEL_EXPORTER_OTLP_TRACES_HEADERS"] ?? env["OTEL_EXPORTER_OTLP_HEADERS"] ?? "";
  const pairs = text.split(",").map((pair) => pair.split("="));
  return Object.fromEntries(
    pairs
      .filter(([key]) => key !== undefined && key.trim() !== "")
      .map(([key = "", ...rest]) => [key.trim(), decodeURIComponent(rest.join("=").trim())]),
  );
}

const KINDS = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, server: SpanKind.SERVER } as const;

class OtelSpans implements SpanSink {
  readonly payloads: boolean;
  readonly #tracer: Tracer;
  readonly #worker: string;

  constructor(tracer: Tracer, worker: string, payloads: boolean) {
    this.#tracer = tracer;
    this.#worker = worker;
    this.payloads = payloads;
  }

  start(spec: SpanStart): ActiveSpan {
    const parent = parseTraceparent(spec.traceparent);
    const around =
      parent === undefined
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, {
            traceId: parent.trace_id,
            spanId: parent.span_id,
            traceFlags: parent.sampled ? 1 : 0,
            isRemote: true,
          });
    if (parent?.sampled === false) return unrecorded(spec.traceparent ?? "", (body) => context.with(around, body));
    const attributes = { ...spec.attributes, [SERVICE]: this.#worker };
    const span = this.#tracer.startSpan(spec.name, { kind: KINDS[spec.kind], attributes }, around);
    const { traceId, spanId, traceFlags } = span.spanContext();
    const inside = trace.setSpan(around, span);
    return {
      traceparent: formatTraceparent({ trace_id: traceId, span_id: spanId, sampled: (traceFlags & 1) === 1 }),
      event: (name, eventAttributes) => void span.addEvent(name, { ...eventAttributes }),
      end(error) {
        if (error === undefined) span.setStatus({ code: SpanStatusCode.OK });
        else span.setStatus({ code: SpanStatusCode.ERROR, message: redactText(`${error.code}: ${error.message}`) });
        span.end();
      },
      run: (body) => context.with(inside, body),
    };
  }

  active(): string | undefined {
    const found = trace.getActiveSpan()?.spanContext();
    if (found === undefined || !isSpanContextValid(found)) return undefined;
    return formatTraceparent({ trace_id: found.traceId, span_id: found.spanId, sampled: (found.traceFlags & 1) === 1 });
  }
}
