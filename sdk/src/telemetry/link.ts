// The telemetry wire: frames to `/otel`, kept (so many) while it is down. Losing telemetry never disturbs work.
import { Connection } from "../client/connection.ts";
import type { Clock, Dialer, Random } from "../ports.ts";

export interface TelemetryLinkOptions {
  readonly dialer: Dialer;
  readonly clock: Clock;
  readonly random: Random;
}

const MAX_KEPT = 1_000;

export class TelemetryLink {
  readonly #connection: Connection;
  #kept: Uint8Array[] = [];

  constructor(options: TelemetryLinkOptions) {
    this.#connection = new Connection({
      ...options,
      path: "/otel",
      opened: () => {
        const kept = this.#kept;
        this.#kept = [];
        for (const frame of kept) this.send(frame);
      },
      lost() {},
      message() {},
    });
    this.#connection.start();
  }

  /** `frame`: four letters and OTLP JSON. The oldest frame gives way when too many wait. */
  send(frame: Uint8Array): void {
    if (this.#connection.phase === "open") {
      this.#connection.send(frame, true);
      return;
    }
    if (this.#kept.length >= MAX_KEPT) this.#kept.shift();
    this.#kept.push(frame);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

const encoder = new TextEncoder();

/** One telemetry frame. */
export function telemetryFrame(kind: "OTLP" | "LOGS" | "MTRC", json: string): Uint8Array {
  return encoder.encode(kind + json);
}
