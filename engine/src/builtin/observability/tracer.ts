// The engine's own spans, by the same recorder as those of the workers in its process.
import { type ActiveSpan, parseBaggage, type SpanSink } from "@iii/sdk";
import type { EngineTracer } from "../../ports/tracer.ts";

function attributesOf(attributes: Record<string, string> | undefined, baggage: string | undefined): Record<string, string> {
  if (baggage === undefined) return attributes ?? {};
  const all: Record<string, string> = {};
  for (const [key, value] of Object.entries(parseBaggage(baggage))) if (key.startsWith("iii.")) all[key] = value;
  return Object.assign(all, attributes);
}

export function createTracer(sink: SpanSink): EngineTracer {
  return {
    start: (name, { traceparent, baggage, attributes, links, kind = "internal" }): ActiveSpan =>
      sink.start({ name, kind, traceparent, attributes: attributesOf(attributes, baggage), ...(links === undefined ? {} : { links }) }),
  };
}
