// Channels: made by a function, opened as sockets of their own under /ws/channels/<id>, removed when both sides are done.
import { BusError, type ChannelRef, type Timer } from "@iii/sdk";
import type { Builtin, EngineHost } from "../../host.ts";
import { channelsCreate } from "./contract.ts";
import { type Direction, Pipe } from "./pipe.ts";

const DEFAULT_FRAMES = 64;
const MAX_FRAMES = 1_024;
const MAX_CHANNELS = 10_000;
const UNUSED_MS = 5 * 60_000;
const SWEEP_MS = 60_000;

interface Channel {
  readonly key: string;
  readonly pipe: Pipe;
}

class Channels {
  readonly #host: EngineHost;
  readonly #open = new Map<string, Channel>();
  #timer: Timer | undefined;

  constructor(host: EngineHost) {
    this.#host = host;
  }

  create(frames: number): { writer: ChannelRef; reader: ChannelRef } {
    if (this.#open.size >= MAX_CHANNELS) throw new BusError("quota_exceeded", `${MAX_CHANNELS} channels are open already`);
    const { random, clock } = this.#host;
    const channel_id = random.uuid();
    const access_key = random.uuid();
    const done = (): void => void this.#open.delete(channel_id);
    const pipe = new Pipe({ limit: Math.min(MAX_FRAMES, Math.max(1, Math.trunc(frames))), created_at: clock.now(), done });
    this.#open.set(channel_id, { key: access_key, pipe });
    this.#timer ??= clock.setTimer(() => this.#sweep(), SWEEP_MS);
    return {
      writer: { channel_id, access_key, direction: "write" },
      reader: { channel_id, access_key, direction: "read" },
    };
  }

  get size(): number {
    return this.#open.size;
  }

  find(id: string, query: URLSearchParams): { pipe: Pipe; direction: Direction } | number {
    const key = query.get("key");
    const direction = query.get("dir");
    if (key === null || (direction !== "read" && direction !== "write")) return 400;
    const channel = this.#open.get(id);
    return channel === undefined || channel.key !== key ? 404 : { pipe: channel.pipe, direction };
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #sweep(): void {
    const { clock } = this.#host;
    for (const [id, { pipe }] of [...this.#open]) {
      if (pipe.met || clock.now() - pipe.created_at < UNUSED_MS) continue;
      this.#open.delete(id);
      pipe.expire();
    }
    this.#timer = this.#open.size === 0 ? undefined : clock.setTimer(() => this.#sweep(), SWEEP_MS);
  }
}

export function channelBuiltin(): Builtin {
  return {
    name: "channel",
    install(host) {
      const channels = new Channels(host);
      host.handle("iii-engine-functions", channelsCreate, ({ buffer_size }) => channels.create(buffer_size ?? DEFAULT_FRAMES));
      host.serveWires("channels", {
        check(rest, query) {
          const found = channels.find(rest, query);
          return typeof found === "number" ? found : 101;
        },
        accept(rest, query, wire) {
          const found = channels.find(rest, query);
          return typeof found === "number" ? undefined : found.pipe.attach(found.direction, wire);
        },
      });
      return { stop: () => channels.stop() };
    },
  };
}
