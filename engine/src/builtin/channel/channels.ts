// The open channels by id. Built-ins get channels whose one end the engine holds; everybody else gets references.
import { BusError, type ChannelRef, type Timer } from "@iii/sdk";
import type { ChannelMaker, EngineChannel, EngineHost } from "../../ports/host.ts";
import { type Direction, Pipe } from "./pipe.ts";

const MAX_FRAMES = 1_024;
/** Channels of one connection that are not done. */
const MAX_CHANNELS = 10_000;
const UNUSED_MS = 5 * 60_000;
const SWEEP_MS = 60_000;
/** A channel that the engine ended is remembered for so long: who opens it late is closed, not refused, as clients expect. */
const ENDED_MS = 5_000;

interface Channel {
  readonly id: string;
  readonly key: string;
  readonly pipe: Pipe;
  /** The connection that made it; undefined: the engine. */
  readonly owner: string | undefined;
}

type Found = { readonly pipe: Pipe; readonly direction: Direction };

export class Channels implements ChannelMaker {
  readonly #open = new Map<string, Channel>();
  readonly #owned = new Map<string, Set<Channel>>();
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
    host.onWorkers(({ event, worker_id }) => {
      if (event === "worker_disconnected") this.#left(worker_id);
    });
  }

  /** A channel for clients, counted against the connection that makes it. @throws BusError `quota_exceeded`. */
  create(frames: number, owner: string): { writer: ChannelRef; reader: ChannelRef } {
    const own = this.#owned.get(owner) ?? new Set();
    if (own.size >= MAX_CHANNELS) throw new BusError("quota_exceeded", `this connection has ${MAX_CHANNELS} channels open already`);
    const channel = this.#make(frames, owner);
    this.#owned.set(owner, own.add(channel));
    return refs(channel);
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

  #make(frames: number, owner?: string): Channel {
    if (this.#host === undefined) throw new BusError("channel_send_failed", "the engine is starting");
    const { random, clock } = this.#host;
    const id = random.uuid();
    const limit = Math.min(MAX_FRAMES, Math.max(1, Math.trunc(frames)));
    const pipe = new Pipe({ limit, created_at: clock.monotonic(), done: () => this.#forget(channel) });
    const channel: Channel = { id, key: random.uuid(), pipe, owner };
    this.#open.set(id, channel);
    this.#timer ??= clock.setTimer(() => this.#sweep(), SWEEP_MS);
    return channel;
  }

  #forget(channel: Channel): void {
    this.#open.delete(channel.id);
    const own = channel.owner === undefined ? undefined : this.#owned.get(channel.owner);
    own?.delete(channel);
    if (own?.size === 0) this.#owned.delete(channel.owner ?? "");
  }

  /** A connection is gone: what it made and nobody uses goes with it; what is in use belongs to those who use it. */
  #left(owner: string): void {
    for (const channel of this.#owned.get(owner) ?? []) {
      if (channel.pipe.met) continue;
      this.#open.delete(channel.id);
      channel.pipe.end("the channel's maker has left");
    }
    this.#owned.delete(owner);
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
    for (const channel of [...this.#open.values()]) {
      const { pipe } = channel;
      if (pipe.met || host.clock.monotonic() - pipe.created_at < UNUSED_MS) continue;
      this.#forget(channel);
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
