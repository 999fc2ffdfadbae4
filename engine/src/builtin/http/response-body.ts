// The engine's end of a `response` channel: control frames make the head, binary frames are the body. Decides nothing.
import type { Wire, WireHandlers } from "@iii/sdk";
import type { EngineChannel } from "../../ports/host.ts";
import type { BodySink, BodyStream } from "./port.ts";
import { finalStatus, headerList } from "./respond.ts";

const NORMAL = 1000;
const decoder = new TextDecoder();

export interface ResponseEvents {
  /** The first piece of the body is here: the head is fixed. */
  begun(): void;
  /** No more pieces come. `lost`: the writer went without saying that it was done. */
  ended(how: "closed" | "lost"): void;
}

type Pair = readonly [string, string];

function control(data: Uint8Array | string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(typeof data === "string" ? data : decoder.decode(data));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Names that are set again replace what was set before; within one frame a name may repeat. */
function merged(old: readonly Pair[], fresh: readonly Pair[]): readonly Pair[] {
  const names = new Set(fresh.map(([name]) => name.toLowerCase()));
  return [...old.filter(([name]) => !names.has(name.toLowerCase())), ...fresh];
}

export class ResponseBody {
  readonly #handlers: WireHandlers;
  readonly #events: ResponseEvents;
  #status = 200;
  #headers: readonly Pair[] = [];
  #headSet = false;
  #begun = false;
  #closed = false;
  /** What came before the listener opened the body. */
  #early: Uint8Array[] = [];
  #earlyBytes = 0;
  #finish: "end" | "abort" | undefined;
  #sink: BodySink | undefined;

  constructor(channel: EngineChannel, events: ResponseEvents) {
    this.#events = events;
    const buffered = (): number => this.#sink?.buffered ?? this.#earlyBytes;
    const wire: Wire = {
      send: (data, binary) => this.#take(data, binary === true),
      pause() {},
      resume() {},
      close: (code) => this.#close(code === NORMAL ? "closed" : "lost"),
      terminate: () => this.#close("lost"),
      get buffered() {
        return buffered();
      },
    };
    this.#handlers = channel.attach("read", wire);
  }

  /** The head as the function has set it so far. */
  get head(): { status: number; headers: readonly Pair[] } {
    return { status: this.#status, headers: this.#headers };
  }

  /** The function has said something about the head. */
  get headSet(): boolean {
    return this.#headSet;
  }

  readonly stream: BodyStream = (sink) => {
    this.#sink = sink;
    for (const piece of this.#early.splice(0)) sink.write(piece);
    this.#earlyBytes = 0;
    if (this.#finish !== undefined) sink[this.#finish]();
    else this.#handlers.drain?.();
    return { drain: () => this.#handlers.drain?.() };
  };

  /** The body is complete, or never will be. */
  finish(how: "end" | "abort"): void {
    if (this.#finish !== undefined) return;
    this.#finish = how;
    this.#sink?.[how]();
  }

  #take(data: Uint8Array | string, binary: boolean): void {
    if (this.#closed || this.#finish !== undefined) return;
    if (binary && typeof data !== "string") this.#piece(data);
    else if (!this.#begun) this.#control(control(data));
  }

  #piece(piece: Uint8Array): void {
    if (this.#sink === undefined) {
      this.#early.push(piece);
      this.#earlyBytes += piece.byteLength;
    } else if (piece.byteLength > 0) this.#sink.write(piece);
    if (this.#begun) return;
    this.#begun = true;
    this.#events.begun();
  }

  #control(frame: Record<string, unknown>): void {
    if (frame["type"] === "set_status") {
      this.#status = finalStatus(frame["status_code"]) ?? this.#status;
      this.#headSet = true;
    }
    if (frame["type"] === "set_headers") {
      this.#headers = merged(this.#headers, headerList(frame["headers"]));
      this.#headSet = true;
    }
  }

  #close(how: "closed" | "lost"): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#handlers.close(NORMAL, "");
    this.#events.ended(how);
  }
}
