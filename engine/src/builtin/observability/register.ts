// What the engine observes: its tracer, where telemetry arrives, and the functions that read both.
import {
  type Clock,
  type Logger,
  parseBaggage,
  type Random,
  type RecordedSpan,
  Recorder,
  type SpanSink,
  type Surroundings,
  systemClock,
  systemRandom,
} from "@iii/sdk";
import { loadSurroundings, type TelemetrySwitches, toldLogger } from "@iii/sdk/trace";
import type { Builtin, EngineHost } from "../../ports/host.ts";
import { type EngineTracer, noTracer, type Telemetry } from "../../ports/tracer.ts";
import { Archive } from "./archive.ts";
import {
  baggageGet,
  baggageGetAll,
  baggageSet,
  healthCheck,
  logDebug,
  logError,
  logInfo,
  logsClear,
  logsList,
  logTrace,
  logWarn,
  type StoredSpan,
  type TraceStorage,
  tracesClear,
  tracesGroupBy,
  tracesList,
  tracesTree,
} from "./contract.ts";
import { LogStore } from "./logs.ts";
import { readFrame, severityText } from "./otlp.ts";
import { groupSpans, listSpans } from "./queries.ts";
import { storedLog, storedSpan } from "./recorded.ts";
import { lose, SpanStore } from "./spans.ts";
import { createTracer } from "./tracer.ts";
import { buildTree } from "./tree.ts";

const OWNER = "iii-observability";
const VERSION = "0.1.0";
/** The source name under which spans of this process are open. */
const ENGINE = "engine";
/** The API is loaded once the start is over: workers in this process are ours, and none of them has spans of its own yet. */
const API_MS = 1_000;
const EARLIER = "an earlier run";

export interface ObservabilityOptions {
  readonly max_spans?: number;
  /** Default: everything is recorded. */
  readonly switches?: TelemetrySwitches;
}

/** The built-in that records: the spans of this process, and what arrives on telemetry wires. */
export function observabilityBuiltin(options: ObservabilityOptions = {}): Builtin {
  return new Observability(options);
}

class Observability implements Telemetry, Builtin {
  readonly name = OWNER;
  readonly store: SpanStore;
  readonly #logs = new LogStore();
  readonly #switches: TelemetrySwitches;
  #clock: Clock = systemClock;
  #random: Random = systemRandom;
  #tracer: EngineTracer = noTracer;
  #archive: Archive | undefined;
  #around: Surroundings | undefined;
  #badFrames = 0;

  constructor({ switches = { enabled: true, payloads: true }, ...options }: ObservabilityOptions) {
    this.#switches = switches;
    this.store = new SpanStore({
      ...options,
      changed: (trace_id, span) => this.#archive?.note(trace_id, span, () => this.store.lasting(trace_id)),
    });
  }

  get telemetry(): Telemetry {
    return this;
  }

  get tracer(): EngineTracer {
    return this.#tracer;
  }

  ingest(frame: Uint8Array, source: string): void {
    const batch = readFrame(frame);
    if (batch === undefined) {
      this.#badFrames += 1;
      return;
    }
    for (const span of batch.spans) this.store.put(span, source);
    for (const log of batch.logs) this.#logs.put(log);
  }

  spans(service: string): SpanSink | undefined {
    if (!this.#switches.enabled) return undefined;
    const put = (span: RecordedSpan): void => this.store.put(storedSpan(span), ENGINE);
    const { payloads } = this.#switches;
    const outlet = { started: put, ended: put };
    return new Recorder({ service, outlet, clock: this.#clock, random: this.#random, payloads, around: () => this.#around });
  }

  logger(log: Logger, service: string): Logger {
    return this.#switches.enabled ? toldLogger(log, service, this.#clock, (record) => this.#logs.put(storedLog(record))) : log;
  }

  closed(source: string): void {
    this.store.close(source, this.#nano());
  }

  install(host: EngineHost) {
    this.#clock = host.clock;
    this.#random = host.random;
    const sink = this.spans("iii-engine");
    if (sink !== undefined) this.#tracer = createTracer(sink);
    this.#traces(host);
    this.#logFunctions(host);
    this.#small(host);
    return {
      start: async () => {
        const archive = new Archive(host);
        this.#adopt(await archive.load(), archive);
        host.clock.setTimer(() => void this.#serveApi(), API_MS);
      },
      stop: async () => {
        this.store.close(ENGINE, this.#nano());
        await this.#archive?.flush();
      },
    };
  }

  async #serveApi(): Promise<void> {
    this.#around = await loadSurroundings();
  }

  /** Spans that the earlier run left open: their processes may live on and still end them; until then they are lost. */
  #adopt(earlier: readonly StoredSpan[], archive: Archive): void {
    const ended = earlier.filter((span) => span.pending !== true);
    for (const span of ended) this.store.put(span, EARLIER);
    // From here on changes are kept: what stands in the archive as it was is not written again.
    this.#archive = archive;
    for (const span of earlier) if (span.pending === true) this.store.put(lose(span, this.#nano()), EARLIER);
    const known = new Set(this.store.all().map((span) => span.trace_id));
    for (const { trace_id } of earlier) if (!known.has(trace_id)) archive.note(trace_id, undefined, () => []);
  }

  #nano(): number {
    return this.#clock.now() * 1e6;
  }

  #storage(): TraceStorage {
    const dropped = this.store.dropped + (this.#archive?.skipped ?? 0);
    const error = this.#archive?.lastError ?? null;
    return {
      archive: this.#archive === undefined ? "disabled" : error === null ? "healthy" : "degraded",
      completeness: dropped === 0 ? "complete" : "partial",
      known_dropped_spans: dropped,
      physical_bytes: 0,
      max_disk_bytes: 0,
      last_error: error,
    };
  }

  #traces(host: EngineHost): void {
    host.handle(OWNER, tracesList, (input) => {
      const { spans, total } = listSpans(this.store.all(), input);
      return { spans, total, offset: input.offset, limit: input.limit, storage: this.#storage() };
    });
    host.handle(OWNER, tracesTree, ({ trace_id }) => ({ roots: buildTree(this.store.trace(trace_id)), storage: this.#storage() }));
    host.handle(OWNER, tracesGroupBy, (input) => ({ groups: groupSpans(this.store.all(), input), storage: this.#storage() }));
    host.handle(OWNER, tracesClear, () => {
      this.store.clear();
      return { success: true as const };
    });
  }

  #logFunctions(host: EngineHost): void {
    const levels = [
      [logInfo, 9],
      [logWarn, 13],
      [logError, 17],
      [logDebug, 5],
      [logTrace, 1],
    ] as const;
    for (const [definition, severity] of levels) {
      host.handle(OWNER, definition, ({ message, data, trace_id, span_id, service_name }) => {
        const time = this.#nano();
        this.#logs.put({
          timestamp_unix_nano: time,
          observed_timestamp_unix_nano: time,
          severity_number: severity,
          severity_text: severityText(severity),
          body: message,
          attributes: asAttributes(data),
          trace_id: trace_id ?? null,
          span_id: span_id ?? null,
          resource: {},
          service_name: service_name ?? "unknown",
        });
        return null;
      });
    }
    host.handle(OWNER, logsList, (query) => ({ ...this.#logs.list(query), timestamp: this.#clock.now() }));
    host.handle(OWNER, logsClear, () => {
      this.#logs.clear();
      return { success: true };
    });
  }

  #small(host: EngineHost): void {
    host.handle(OWNER, baggageGet, ({ key }, call) => ({ value: parseBaggage(call.baggage)[key] ?? null }));
    host.handle(OWNER, baggageGetAll, (_input, call) => ({ baggage: { ...parseBaggage(call.baggage) } }));
    host.handle(OWNER, baggageSet, () => ({
      success: true as const,
      note: "baggage travels with a call and cannot be changed afterwards; set it on the calls you make",
    }));
    host.handle(OWNER, healthCheck, () => {
      const storage = this.#storage();
      const healthy = { status: "healthy" as const };
      return {
        status: storage.archive === "degraded" ? ("degraded" as const) : ("healthy" as const),
        components: {
          otel: { ...healthy, details: { bad_frames: this.#badFrames } },
          metrics: { status: "disabled" as const, details: null },
          logs: { ...healthy, details: { stored: this.#logs.count } },
          spans: { ...healthy, details: { stored: this.store.count, ...storage } },
        },
        timestamp: this.#clock.now(),
        version: VERSION,
      };
    });
  }
}

function asAttributes(data: unknown): Record<string, unknown> {
  if (data === undefined || data === null) return {};
  return typeof data === "object" && !Array.isArray(data) ? { ...data } : { data };
}
