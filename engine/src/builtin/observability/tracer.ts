// The engine's own spans, recorded straight into the span store: the engine does not load an OpenTelemetry SDK.
import { type Clock, formatTraceparent, parseBaggage, parseTraceparent, type Random } from "@iii/sdk";
import type { EngineSpan, EngineTracer } from "../../ports/tracer.ts";
import { cleanOutcome, cleanSpan } from "./clean.ts";
import type { SpanLink, StoredSpan } from "./contract.ts";
import type { SpanStore } from "./spans.ts";

/** The source name under which the engine's own spans are open. */
export const ENGINE = "engine";

export interface TracerDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly spans: SpanStore;
}

const linkTo = (traceparent: string): SpanLink[] => {
  const target = parseTraceparent(traceparent);
  return target === undefined ? [] : [{ trace_id: target.trace_id, span_id: target.span_id, trace_state: null, attributes: [] }];
};

function attributesOf(attributes: Record<string, string> | undefined, baggage: string | undefined): [string, string][] {
  const all: Record<string, string> = {};
  for (const [key, value] of Object.entries(parseBaggage(baggage))) if (key.startsWith("iii.")) all[key] = value;
  return Object.entries(Object.assign(all, attributes));
}

export function createTracer({ clock, random, spans }: TracerDeps): EngineTracer {
  const nano = (): number => clock.now() * 1e6;
  return {
    start(name, options): EngineSpan {
      const parent = parseTraceparent(options.traceparent);
      if (parent?.sampled === false) return { traceparent: options.traceparent ?? "", end() {} };
      const span: StoredSpan = cleanSpan({
        trace_id: parent?.trace_id ?? random.hex(16),
        span_id: random.hex(8),
        parent_span_id: parent?.span_id ?? null,
        name,
        start_time_unix_nano: nano(),
        end_time_unix_nano: 0,
        status: "unset",
        attributes: attributesOf(options.attributes, options.baggage),
        service_name: "iii-engine",
        events: [],
        links: (options.links ?? []).flatMap(linkTo),
        instrumentation_scope_name: "@iii/engine",
        pending: true,
      });
      spans.putClean(span, ENGINE);
      let ended = false;
      return {
        traceparent: formatTraceparent({ trace_id: span.trace_id, span_id: span.span_id, sampled: true }),
        end(error) {
          if (ended) return;
          ended = true;
          const { pending: _, ...rest } = span;
          spans.putClean({ ...rest, ...cleanOutcome(error), end_time_unix_nano: nano() }, ENGINE);
        },
      };
    },
  };
}
