// Where spans go when the engine is another process: batched into OTLP JSON on the telemetry wire. The engine redacts all it takes in.
import type { Clock, Timer } from "../ports.ts";
import { type TelemetryLink, telemetryFrame } from "./link.ts";
import { spanText, traceRequest } from "./otlp.ts";
import type { RecordedSpan, SpanOutlet } from "./recorder.ts";

const BATCH_MS = 100;
const MAX_BATCH = 512;
/** Most spans end sooner, and then only their end is sent. */
const YOUNG_MS = 20;

/** Ended spans leave in batches; one that still runs then is sent with end 0, once, so that a process that dies leaves a trace of it. */
export class SpanWire implements SpanOutlet {
  readonly #link: Pick<TelemetryLink, "send">;
  readonly #clock: Clock;
  readonly #unsaid = new Map<string, RecordedSpan>();
  #batch = new Map<string, string[]>();
  #count = 0;
  #timer: Timer | undefined;

  constructor(link: Pick<TelemetryLink, "send">, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  started(span: RecordedSpan): void {
    this.#unsaid.set(span.span_id, span);
    this.#arm();
  }

  ended(span: RecordedSpan): void {
    this.#unsaid.delete(span.span_id);
    this.#put(span);
    if (this.#count >= MAX_BATCH) this.#send();
    else this.#arm();
  }

  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const old = this.#clock.now() - YOUNG_MS;
    for (const span of this.#unsaid.values()) {
      if (span.start_ms > old) continue;
      this.#unsaid.delete(span.span_id);
      this.#put(span);
    }
    this.#send();
    if (this.#unsaid.size > 0) this.#arm();
  }

  #arm(): void {
    this.#timer ??= this.#clock.setTimer(() => this.flush(), BATCH_MS);
  }

  #put(span: RecordedSpan): void {
    const texts = this.#batch.get(span.service);
    if (texts === undefined) this.#batch.set(span.service, [spanText(span)]);
    else texts.push(spanText(span));
    this.#count += 1;
  }

  #send(): void {
    if (this.#count === 0) return;
    const frame = telemetryFrame("OTLP", traceRequest(this.#batch));
    this.#batch = new Map();
    this.#count = 0;
    this.#link.send(frame);
  }
}
