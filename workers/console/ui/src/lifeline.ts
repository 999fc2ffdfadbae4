// The page's socket, watched: one that has died without a word is dropped, so that the client dials again. Also tells dials that the
// engine refused from an engine that is gone, which a socket's close event does not.
import type { Dialer, Wire, WireHandlers } from "@iii/sdk";
import { browserDialer } from "@iii/sdk/browser";
import { dialled, heard, nextPulse, type Pulse } from "./model/pulse.ts";

const TICK_MS = 1_000;
const LOOK_MS = 3_000;
const PING = JSON.stringify({ type: "ping" });

/** `gone`: nothing answers at the page's own origin. `refused`: the engine is there and did not take the socket. */
export type Failure = "gone" | "refused";

export interface LifelineOptions {
  /** Asked for at each dial: the address changes with the page's key. */
  url(): string;
  /** A dial ended before its socket was open. */
  failed(failure: Failure): void;
  opened(): void;
}

interface Line {
  wire: Wire;
  pulse: Pulse;
}

export class Lifeline implements Dialer {
  readonly #options: LifelineOptions;
  #line: Line | undefined;

  constructor(options: LifelineOptions) {
    this.#options = options;
  }

  get address(): string {
    return this.#options.url();
  }

  /** Starts watching, for as long as the page lives. */
  start(): void {
    const doubt = () => this.#look(true);
    setInterval(() => this.#look(false), TICK_MS);
    window.addEventListener("online", doubt);
    window.addEventListener("pageshow", doubt);
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") doubt();
    });
  }

  dial(path: string, handlers: WireHandlers): Wire {
    const hear = () => {
      if (this.#line !== undefined) this.#line.pulse = heard(this.#line.pulse, performance.now());
    };
    let open = false;
    const wire = browserDialer(this.#options.url()).dial(path, {
      open: () => {
        open = true;
        hear();
        this.#options.opened();
        handlers.open?.();
      },
      message: (data, binary) => {
        hear();
        handlers.message(data, binary);
      },
      close: (code, reason) => {
        if (this.#line?.wire === wire) this.#line = undefined;
        if (!open) void this.#why();
        handlers.close(code, reason);
      },
    });
    this.#line = { wire, pulse: dialled(performance.now()) };
    return wire;
  }

  /** Ends the socket that is open, if one is; the client then dials the address of now. */
  redial(): void {
    this.#line?.wire.terminate();
  }

  #look(doubt: boolean): void {
    const line = this.#line;
    if (line === undefined) return;
    const now = performance.now();
    const next = nextPulse(line.pulse, now, doubt);
    if (next === "drop") line.wire.terminate();
    if (next !== "ask") return;
    line.pulse = { ...line.pulse, asked_at: now };
    line.wire.send(PING);
  }

  /** A script may not see why a socket did not open; whether anything answers at its origin tells the two reasons apart. */
  async #why(): Promise<void> {
    const there = await fetch("/healthz", { signal: AbortSignal.timeout(LOOK_MS), cache: "no-store" }).then(
      () => true,
      () => false,
    );
    this.#options.failed(there ? "refused" : "gone");
  }
}
