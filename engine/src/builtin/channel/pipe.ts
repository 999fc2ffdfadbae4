// One channel: frames of one writer to one reader, in order, boundaries kept, with a bounded buffer in between.
import type { Wire, WireHandlers } from "@iii/sdk";

interface FrameData {
  readonly data: Uint8Array;
  readonly binary: boolean;
}

export type Direction = "read" | "write";

/** Bytes that may wait inside the reader's wire, and bytes that may wait in the buffer beside the count of frames. */
const READER_BYTES = 1_048_576;
const BUFFER_BYTES = 8 * 1_048_576;

const NORMAL = 1000;
const NO_CODE = 1005;
const GOING_AWAY = 1001;
const TAKEN = 1008;
const LOST = 1011;

export class Pipe {
  readonly created_at: number;
  readonly #limit: number;
  readonly #done: () => void;
  readonly #buffer: FrameData[] = [];
  #bytes = 0;
  #writer: Wire | undefined;
  #reader: Wire | undefined;
  #used = { read: false, write: false };
  /** How the writer ended, once it has. */
  #ended: "closed" | "lost" | undefined;
  #readerGone = false;
  /** Ended from outside: what still arrives is for nobody. */
  #over = false;
  #paused = false;

  /** `done` runs once both sides have ended. */
  constructor(options: { limit: number; created_at: number; done: () => void }) {
    this.#limit = options.limit;
    this.created_at = options.created_at;
    this.#done = options.done;
  }

  /** Both sides have come at some time. */
  get met(): boolean {
    return this.#used.read && this.#used.write;
  }

  /** Somebody has opened this side. */
  taken(direction: Direction): boolean {
    return this.#used[direction];
  }

  /** Takes a wire as one side. Each side is taken once; a second one is closed at once. */
  attach(direction: Direction, wire: Wire): WireHandlers {
    if (this.#used[direction]) {
      wire.close(TAKEN, "this side of the channel is taken");
      return { message() {}, close() {} };
    }
    this.#used[direction] = true;
    return direction === "write" ? this.#attachWriter(wire) : this.#attachReader(wire);
  }

  /** Ends both sides, whatever they still have to say; whoever opens one later is closed at once. */
  end(reason: string): void {
    this.#used = { read: true, write: true };
    this.#over = true;
    this.#drop();
    this.#dismiss(reason);
    this.#reader?.close(LOST, reason);
  }

  #attachWriter(wire: Wire): WireHandlers {
    this.#writer = wire;
    if (this.#readerGone) wire.close(GOING_AWAY, "the reader is gone");
    return {
      message: (data, binary) => this.#take({ data, binary }),
      close: (code) => {
        this.#writer = undefined;
        this.#ended = code === NORMAL || code === NO_CODE ? "closed" : "lost";
        this.#flush();
      },
    };
  }

  #attachReader(wire: Wire): WireHandlers {
    this.#reader = wire;
    // The reader's side of the wire must be open on its end before frames are handed to it.
    queueMicrotask(() => this.#flush());
    return {
      message() {},
      drain: () => this.#flush(),
      close: () => {
        this.#reader = undefined;
        this.#readerGone = true;
        this.#drop();
        this.#dismiss("the reader is gone");
        if (this.#ended !== undefined) this.#done();
      },
    };
  }

  #take(frame: FrameData): void {
    if (this.#readerGone || this.#over) return;
    this.#buffer.push(frame);
    this.#bytes += frame.data.length;
    this.#flush();
    if (!this.#paused && (this.#buffer.length >= this.#limit || this.#bytes > BUFFER_BYTES)) {
      this.#paused = true;
      this.#writer?.pause();
    }
  }

  #flush(): void {
    this.#forward();
    if (this.#paused && this.#buffer.length < this.#limit && this.#bytes <= BUFFER_BYTES) {
      this.#paused = false;
      this.#writer?.resume();
    }
    if (this.#ended === undefined || (this.#buffer.length > 0 && !this.#readerGone)) return;
    if (this.#ended === "closed") this.#reader?.close(NORMAL, "the writer closed");
    else this.#reader?.close(LOST, "the writer was lost");
    if (this.#readerGone) this.#done();
  }

  /** Hands over what the reader's wire has room for. */
  #forward(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    let sent = 0;
    for (const frame of this.#buffer) {
      if (reader.buffered > READER_BYTES) break;
      this.#bytes -= frame.data.length;
      reader.send(frame.data, frame.binary);
      sent += 1;
    }
    if (sent > 0) this.#buffer.splice(0, sent);
  }

  /** A paused wire would not hear the other end's answer to the close. */
  #dismiss(reason: string): void {
    if (this.#paused) this.#writer?.resume();
    this.#paused = false;
    this.#writer?.close(GOING_AWAY, reason);
  }

  #drop(): void {
    this.#buffer.length = 0;
    this.#bytes = 0;
  }
}
