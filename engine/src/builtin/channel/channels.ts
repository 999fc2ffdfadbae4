// The open channels by id. Built-ins get channels whose one end the engine holds; everybody else gets references.
import { BusError, type ChannelRef, type Timer } from "@iii/sdk";
import type { ChannelMaker, EngineChannel, EngineHost } from "../../ports/host.ts";
import { type Direction, Pipe } from "./pipe.ts";

const MAX_FRAMES = 1_024;
const MAX_CHANNELS = 10_000;
const UNUSED_MS = 5 * 60_000;
const SWEEP_MS = 60_000;
/** A channel that the engine ended is remembered for so long: who opens it late is closed, not refused, as clients expect. */
const ENDED_MS = 5_000;

interface Channel {
  readonly id: string;
  readonly key: string;
  readonly pipe: Pipe;
}

type Found = { readonly pipe: Pipe; readonly direction: Direction };

export class Channels implements ChannelMaker {
  readonly #open = new Map<string, Channel>();
  /** Oldest first. */
  readonly #ended: { readonly id: string; readonly at: number }[] = [];
  /** Stands for every channel that was ended, so that none of them is kept. */
  readonly #over = new Pipe({ limit: 1, created_at: Number.POSITIVE_INFINITY, done: () => undefined });
  #host: EngineHost | undefined;
  #timer: Timer | undefined;
  #endTimer: Timer | undefined;

  install(host: EngineHost): void {
    this.#host = host;
    this.#over.end("the channel has ended");
  }

  /** A channel for clients. @throws BusError `quota_exceeded`. */
  create(frames: number): { writer: ChannelRef; reader: ChannelRef } {
    if (this.#open.size - this.#ended.length >= MAX_CHANNELS) {
      throw new BusError("quota_exceeded", `${MAX_CHANNELS} channels are open already`);
    }
    return refs(this.#make(frames));
  }

  open(frames: number): EngineChannel {
    const channel = this.#make(frames);
    const { pipe } = channel;
    return {
      ...refs(channel),
      taken: (side) => pipe.taken(side),
      attach: (side, wire) => pipe.attach(side, wire),
      end: () => this.#end(channel),
    };
  }

  find(id: string, query: URLSearchParams): Found | number {
    const key = query.get("key");
    const direction = query.get("dir");
    if (key === null || (direction !== "read" && direction !== "write")) return 400;
    const channel = this.#open.get(id);
    return channel === undefined || channel.key !== key ? 404 : { pipe: channel.pipe, direction };
  }

  stop(): void {
    this.#timer?.cancel();
    this.#endTimer?.cancel();
  }

  #make(frames: number): Channel {
    if (this.#host === undefined) throw new BusError("channel_send_failed", "the engine is starting");
    const { random, clock } = this.#host;
    const id = random.uuid();
    const limit = Math.min(MAX_FRAMES, Math.max(1, Math.trunc(frames)));
    const pipe = new Pipe({ limit, created_at: clock.monotonic(), done: () => void this.#open.delete(id) });
    const channel = { id, key: random.uuid(), pipe };
    this.#open.set(id, channel);
    this.#timer ??= clock.setTimer(() => this.#sweep(), SWEEP_MS);
    return channel;
  }

  #end(channel: Channel): void {
    channel.pipe.end("the channel has ended");
    if (this.#host === undefined) return;
    const { clock } = this.#host;
    this.#open.set(channel.id, { ...channel, pipe: this.#over });
    this.#ended.push({ id: channel.id, at: clock.monotonic() });
    this.#endTimer ??= clock.setTimer(() => this.#forgetEnded(), ENDED_MS);
  }

  #forgetEnded(): void {
    const host = this.#host;
    if (host === undefined) return;
    const young = host.clock.monotonic() - ENDED_MS;
    const kept = this.#ended.findIndex(({ at }) => at > young);
    for (const { id } of this.#ended.splice(0, kept === -1 ? this.#ended.length : kept)) this.#open.delete(id);
    this.#endTimer = this.#ended.length === 0 ? undefined : host.clock.setTimer(() => this.#forgetEnded(), ENDED_MS);
  }

  #sweep(): void {
    const host = this.#host;
    if (host === undefined) return;
    for (const { id, pipe } of [...this.#open.values()]) {
      if (pipe.met || host.clock.monotonic() - pipe.created_at < UNUSED_MS) continue;
      this.#open.delete(id);
      pipe.end("the channel was not used in time");
    }
    this.#timer = this.#open.size === 0 ? undefined : host.clock.setTimer(() => this.#sweep(), SWEEP_MS);
  }
}

function refs({ id, key }: Channel): { writer: ChannelRef; reader: ChannelRef } {
  return {
    writer: { channel_id: id, access_key: key, direction: "write" },
    reader: { channel_id: id, access_key: key, direction: "read" },
  };
}
