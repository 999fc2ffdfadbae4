// Channels: made by a function, opened as sockets of their own under /ws/channels/<id>, removed when both sides are done.
import type { Builtin } from "../../ports/host.ts";
import { Channels } from "./channels.ts";
import { channelsCreate } from "./contract.ts";

const DEFAULT_FRAMES = 64;

export function channelBuiltin(): Builtin {
  const channels = new Channels();
  return {
    name: "channel",
    channels,
    install(host) {
      channels.install(host);
      host.handle("iii-engine-functions", channelsCreate, ({ buffer_size }, { caller }) =>
        channels.create(buffer_size ?? DEFAULT_FRAMES, caller.worker_id),
      );
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
