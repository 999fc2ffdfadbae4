// A span of `@opentelemetry/api` over one of our recorder.
import {
  type Attributes,
  type AttributeValue,
  type Exception,
  type Span,
  type SpanContext,
  type SpanStatus,
  SpanStatusCode,
  type TimeInput,
} from "@opentelemetry/api";
import type { ActiveSpan } from "../client/spans.ts";
import { messageOf, stackOf } from "../errors.ts";
import { parseTraceparent } from "./traceparent.ts";

const textOf = (value: AttributeValue | undefined): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

export function attributesOf(attributes: Attributes | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(attributes ?? {}).map(([key, value]) => [key, textOf(value)]));
}

const isAttributes = (value: Attributes | TimeInput | undefined): value is Attributes =>
  typeof value === "object" && !Array.isArray(value) && !(value instanceof Date);

export class ApiSpan implements Span {
  readonly #span: ActiveSpan;
  #error: { code: string; message: string } | undefined;
  #ended = false;

  constructor(span: ActiveSpan) {
    this.#span = span;
  }

  spanContext(): SpanContext {
    const { trace_id = "", span_id = "", sampled = false } = parseTraceparent(this.#span.traceparent) ?? {};
    return { traceId: trace_id, spanId: span_id, traceFlags: sampled ? 1 : 0 };
  }

  setAttribute(key: string, value: AttributeValue): this {
    return this.setAttributes({ [key]: value });
  }

  setAttributes(attributes: Attributes): this {
    this.#span.update({ attributes: attributesOf(attributes) });
    return this;
  }

  addEvent(name: string, attributes?: Attributes | TimeInput): this {
    this.#span.event(name, isAttributes(attributes) ? attributesOf(attributes) : {});
    return this;
  }

  /** Links are given when a span starts; later ones are left out. */
  addLink(): this {
    return this;
  }

  addLinks(): this {
    return this;
  }

  setStatus({ code, message = "" }: SpanStatus): this {
    this.#error = code === SpanStatusCode.ERROR ? { code: "error", message } : undefined;
    return this;
  }

  updateName(name: string): this {
    this.#span.update({ name });
    return this;
  }

  end(): void {
    this.#ended = true;
    this.#span.end(this.#error);
  }

  isRecording(): boolean {
    return !this.#ended && this.#span.recording !== false;
  }

  recordException(exception: Exception): void {
    const type = exception instanceof Error ? exception.name : "Error";
    const stack = exception instanceof Error ? stackOf(exception) : "";
    this.#span.event("exception", { "exception.type": type, "exception.message": messageOf(exception), "exception.stacktrace": stack });
  }
}
