// Channel ends over their own wires: a writer that waits for room, a reader that holds the sender back. No frame is lost or reordered.
import { BusError } from "../errors.ts";
import type { Dialer, Wire } from "../ports.ts";
import { systemClock } from "../system.ts";
import type { ChannelReader, ChannelRef, ChannelWriter } from "./channel-port.ts";
import type { Channel } from "./iii.ts";

/** `now`: take the side at once. `first use`: the side may be meant for someone else. */
type DialTime = "now" | "first use";

const HIGH_WATER = 1_048_576;
const READ_AHEAD = 64;
/** Transports that do not report `drain` are asked again after this long. */
const POLL_MS = 20;

/** 1005 is a closing frame without a code: how some engines end a stream. */
const isClean = (code: number): boolean => code === 1000 || code === 1005;

function pathOf(ref: ChannelRef): string {
  const dir = ref.direction === "write" ? "write" : "read";
  return `/ws/channels/${encodeURIComponent(ref.channel_id)}?key=${encodeURIComponent(ref.access_key)}&dir=${dir}`;
}

/** What has a wire open and must let go of it when the client is closed. */
interface End {
  abandon(): void;
}

class Writer implements ChannelWriter {
  readonly #dialer: Dialer;
  readonly #open: Set<End>;
  readonly #ref: ChannelRef;
  readonly #gone = new AbortController();
  readonly #closed = Promise.withResolvers<void>();
  readonly #opened = Promise.withResolvers<void>();
  #wire: Wire | undefined;
  /** Sends run one after the other, so that order survives the waiting. */
  #tail: Promise<void> = Promise.resolve();
  #closing = false;
  #isOpen = false;
  #room: (() => void) | undefined;

  constructor(dialer: Dialer, ref: ChannelRef, open: Set<End>) {
    this.#dialer = dialer;
    this.#ref = ref;
    this.#open = open;
    this.#opened.promise.catch(() => undefined);
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  dial(): Wire {
    if (this.#wire !== undefined) return this.#wire;
    this.#open.add(this);
    this.#wire = this.#dialer.dial(pathOf(this.#ref), {
      open: () => {
        this.#isOpen = true;
        this.#opened.resolve();
      },
      message() {},
      drain: () => this.#room?.(),
      close: (code) => this.#ended(code),
    });
    return this.#wire;
  }

  send(frame: string | Uint8Array): Promise<void> {
    if (this.#closing) return Promise.reject(new BusError("channel_closed", "the channel was already closed by this side"));
    const sent = this.#tail.then(() => this.#write(frame));
    this.#tail = sent.catch(() => undefined);
    return sent;
  }

  async close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      await this.#tail;
      const wire = this.dial();
      await this.#opened.promise.catch(() => undefined);
      wire.close(1000, "channel_close");
    }
    await this.#closed.promise;
  }

  abandon(): void {
    this.#closing = true;
    this.#wire?.terminate();
  }

  async #write(frame: string | Uint8Array): Promise<void> {
    const wire = this.dial();
    await this.#opened.promise;
    this.#check();
    wire.send(frame, typeof frame !== "string");
    while (wire.buffered > HIGH_WATER && !this.#gone.signal.aborted) await this.#drained();
    this.#check();
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const timer = systemClock.setTimer(resolve, POLL_MS);
      this.#room = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #check(): void {
    if (this.#gone.signal.aborted) throw new BusError("channel_closed", "the reader of this channel is gone");
  }

  #ended(code: number): void {
    this.#open.delete(this);
    const asked = this.#closing && isClean(code);
    // The usual end needs no error.
    if (!asked || !this.#isOpen) {
      const error = new BusError("channel_closed", `the channel ended (${code}) before it was closed by this side`);
      this.#opened.reject(error);
      if (!asked) this.#gone.abort(error);
    }
    this.#closed.resolve();
  }
}

class Reader implements ChannelReader {
  readonly #dialer: Dialer;
  readonly #open: Set<End>;
  readonly #ref: ChannelRef;
  readonly #decoder = new TextDecoder();
  #wire: Wire | undefined;
  #frames: (string | Uint8Array)[] = [];
  #paused = false;
  #end: { readonly error: BusError | undefined } | undefined;
  #wake: (() => void) | undefined;
  #taken = false;

  constructor(dialer: Dialer, ref: ChannelRef, open: Set<End>) {
    this.#dialer = dialer;
    this.#ref = ref;
    this.#open = open;
  }

  dial(): Wire {
    if (this.#wire !== undefined) return this.#wire;
    this.#open.add(this);
    this.#wire = this.#dialer.dial(pathOf(this.#ref), {
      message: (data, binary) => this.#push(binary ? data.slice() : this.#decoder.decode(data)),
      close: (code, reason) => {
        this.#open.delete(this);
        this.#finish(isClean(code) ? undefined : new BusError("channel_closed", `the channel broke off (${code} ${reason})`));
      },
    });
    return this.#wire;
  }

  abandon(): void {
    this.close();
  }

  close(): void {
    this.#finish(undefined);
    this.#frames = [];
    this.#wire?.close(1000, "channel_close");
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string | Uint8Array, void, undefined> {
    if (this.#taken) throw new BusError("channel_closed", "a channel can be read once");
    this.#taken = true;
    this.dial();
    try {
      for (;;) {
        const frame = await this.#next();
        if (frame === undefined) return;
        yield frame;
      }
    } finally {
      this.close();
    }
  }

  async #next(): Promise<string | Uint8Array | undefined> {
    while (this.#frames.length === 0) {
      if (this.#end?.error !== undefined) throw this.#end.error;
      if (this.#end !== undefined) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const frame = this.#frames.shift();
    if (this.#paused && this.#frames.length < READ_AHEAD / 2) {
      this.#paused = false;
      this.#wire?.resume();
    }
    return frame;
  }

  #push(frame: string | Uint8Array): void {
    if (this.#end !== undefined) return;
    this.#frames.push(frame);
    if (!this.#paused && this.#frames.length >= READ_AHEAD) {
      this.#paused = true;
      this.#wire?.pause();
    }
    this.#notify();
  }

  #finish(error: BusError | undefined): void {
    this.#end ??= { error };
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

/** The channel ends that one client holds. */
export class Channels {
  readonly #dialer: Dialer;
  readonly #open = new Set<End>();

  constructor(dialer: Dialer) {
    this.#dialer = dialer;
  }

  pair(writerRef: ChannelRef, readerRef: ChannelRef): Channel {
    return { writerRef, readerRef, writer: this.writer(writerRef, "first use"), reader: this.reader(readerRef, "first use") };
  }

  writer(ref: ChannelRef, when: DialTime): ChannelWriter {
    const writer = new Writer(this.#dialer, ref, this.#open);
    if (when === "now") writer.dial();
    return writer;
  }

  reader(ref: ChannelRef, when: DialTime): ChannelReader {
    const reader = new Reader(this.#dialer, ref, this.#open);
    if (when === "now") reader.dial();
    return reader;
  }

  /** The client is closed: its channel ends go with it. */
  close(): void {
    for (const end of [...this.#open]) end.abandon();
  }
}
