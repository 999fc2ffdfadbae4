// `@opentelemetry/api` served by our recorder, so that a worker writes spans against the API and needs no OpenTelemetry SDK. Where the
// process has loaded an SDK of its own first, that one keeps the API, and our spans are made known to it instead.
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  type ContextManager,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanOptions,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { type CallScope, processAmbient } from "../client/ambient.ts";
import { ApiSpan, attributesOf } from "./api-span.ts";
import type { Surroundings } from "./recorder.ts";
import { formatTraceparent, parseTraceparent } from "./traceparent.ts";

/** A context that code of a worker has made active, and the call in which it did so: in another call it counts for nothing. */
interface Entry {
  readonly context: Context;
  readonly scope: CallScope | undefined;
}

const made = new AsyncLocalStorage<Entry>();

function toContext(traceparent: string | undefined): Context {
  const parent = parseTraceparent(traceparent);
  if (parent === undefined) return ROOT_CONTEXT;
  const { trace_id, span_id, sampled } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId: trace_id, spanId: span_id, traceFlags: sampled ? 1 : 0, isRemote: true });
}

const toTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  formatTraceparent({ trace_id: traceId, span_id: spanId, sampled: (traceFlags & 1) === 1 });

/** What code of this call has made active. */
function own(): Context | undefined {
  const entry = made.getStore();
  return entry?.scope === processAmbient.current() ? entry?.context : undefined;
}

const manager: ContextManager = {
  active: () => own() ?? toContext(processAmbient.current()?.traceparent),
  with: (active, body, self, ...args) =>
    made.run({ context: active, scope: processAmbient.current() }, () => body.apply(self as never, args)),
  bind(active, target) {
    if (typeof target !== "function") return target;
    const bound = (...args: unknown[]): unknown =>
      made.run({ context: active, scope: processAmbient.current() }, () => (target as (...given: unknown[]) => unknown)(...args));
    return bound as typeof target;
  },
  enable: () => manager,
  disable: () => manager,
};

/** Spans outside of any call belong to no worker and are not recorded. */
function startSpan(name: string, options: SpanOptions, around: Context): Span {
  const parent = options.root === true ? undefined : trace.getSpanContext(around);
  const sink = processAmbient.current()?.spans;
  if (sink === undefined) return trace.wrapSpanContext(parent ?? { traceId: "0".repeat(32), spanId: "0".repeat(16), traceFlags: 0 });
  const started = sink.start({
    name,
    kind: (["internal", "server", "client", "producer", "consumer"] as const)[options.kind ?? 0] ?? "internal",
    traceparent: parent === undefined || !isSpanContextValid(parent) ? undefined : toTraceparent(parent),
    attributes: attributesOf(options.attributes),
    links: (options.links ?? []).map((link) => toTraceparent(link.context)),
  });
  return new ApiSpan(started);
}

const tracer: Tracer = {
  startSpan: (name, options = {}, around = context.active()) => startSpan(name, options, around),
  startActiveSpan(name: string, ...rest: unknown[]): never {
    const body = rest.at(-1) as (span: Span) => never;
    const [options = {}, around = context.active()] = rest.slice(0, -1) as [SpanOptions?, Context?];
    const span = startSpan(name, options, around);
    return context.with(trace.setSpan(around, span), () => body(span));
  },
};

const ours: Surroundings = {
  run: (_traceparent, body) => body(),
  active() {
    const found = own();
    const active = found === undefined ? undefined : trace.getSpanContext(found);
    return active === undefined || !isSpanContextValid(active) ? undefined : toTraceparent(active);
  },
};

const theirs: Surroundings = {
  run: (traceparent, body) => context.with(toContext(traceparent), body),
  active() {
    const active = trace.getActiveSpan()?.spanContext();
    return active === undefined || !isSpanContextValid(active) ? undefined : toTraceparent(active);
  },
};

let found: Surroundings | undefined;

/** Takes the API for our recorder, or finds that an OpenTelemetry SDK has it. */
export function surroundings(): Surroundings {
  if (found === undefined) {
    const free = trace.setGlobalTracerProvider({ getTracer: () => tracer });
    if (free) context.setGlobalContextManager(manager);
    found = free ? ours : theirs;
  }
  return found;
}
