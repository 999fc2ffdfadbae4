// One wire at a time to one path of the engine, dialled again whenever it is lost. Decides by `link.ts`; knows no frames.
import type { Clock, Dialer, Random, Timer, Wire } from "../ports.ts";
import { type LinkEvent, type LinkState, nextLink, RECONNECT, type ReconnectOptions } from "./link.ts";

export interface ConnectionOptions {
  readonly dialer: Dialer;
  readonly path: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly reconnect?: Partial<ReconnectOptions> | undefined;
  opened(): void;
  lost(code: number, reason: string): void;
  message(data: Uint8Array): void;
  /** Runs after every change of phase. */
  changed?(): void;
}

const CLOSE_MS = 1_000;

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #reconnect: ReconnectOptions;
  #link: LinkState = { phase: "connecting", attempt: 0 };
  #wire: Wire | undefined;
  #dialled = 0;
  #retry: Timer | undefined;
  #everOpen = false;
  #down: (() => void) | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#reconnect = { ...RECONNECT, ...options.reconnect };
  }

  get phase(): LinkState["phase"] {
    return this.#link.phase;
  }

  get everOpen(): boolean {
    return this.#everOpen;
  }

  /** Which wire is in use: an answer must not leave on another one than its call came on. */
  get epoch(): number {
    return this.#dialled;
  }

  /** Starts dialling; called once. */
  start(): void {
    this.#dial();
  }

  /** Sends when open; drops otherwise. */
  send(data: string | Uint8Array, binary = false): void {
    if (this.#link.phase === "open") this.#wire?.send(data, binary);
  }

  /** Closes for good. Resolves when the wire is down, so that what was sent has left. */
  async close(): Promise<void> {
    const wasUp = this.#wire !== undefined;
    this.#step({ type: "close" });
    if (!wasUp) return;
    await new Promise<void>((resolve) => {
      const late = this.#options.clock.setTimer(resolve, CLOSE_MS);
      this.#down = () => {
        late.cancel();
        resolve();
      };
    });
  }

  #dial(): void {
    this.#dialled += 1;
    const turn = this.#dialled;
    // A transport may call back before `dial` has returned its wire.
    let openedEarly = false;
    const wire = this.#options.dialer.dial(this.#options.path, {
      open: () => {
        if (this.#wire === undefined) openedEarly = true;
        else if (turn === this.#dialled) this.#step({ type: "opened" });
      },
      message: (data) => {
        if (turn === this.#dialled) this.#options.message(data);
      },
      close: (code, reason) => {
        this.#down?.();
        if (turn === this.#dialled) this.#lost(code, reason);
      },
    });
    if (turn !== this.#dialled || this.#link.phase !== "connecting") return;
    this.#wire = wire;
    if (openedEarly) this.#step({ type: "opened" });
  }

  #lost(code: number, reason: string): void {
    const wasOpen = this.#link.phase === "open";
    this.#wire = undefined;
    this.#step({ type: "lost" });
    if (wasOpen) this.#options.lost(code, reason);
  }

  #step(event: LinkEvent): void {
    const before = this.#link.phase;
    const [next, effect] = nextLink(this.#link, event, this.#options.random.float(), this.#reconnect);
    this.#link = next;
    if (effect?.type === "dial") this.#dial();
    if (effect?.type === "wait") this.#retry = this.#options.clock.setTimer(() => this.#step({ type: "due" }), effect.ms);
    if (effect?.type === "hang_up") this.#hangUp();
    if (before === next.phase) return;
    if (next.phase === "open") {
      this.#everOpen = true;
      this.#options.opened();
    }
    this.#options.changed?.();
  }

  #hangUp(): void {
    this.#retry?.cancel();
    this.#dialled += 1;
    this.#wire?.close(1000, "closed");
    this.#wire = undefined;
  }
}
