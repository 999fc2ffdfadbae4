// A TCP proxy that can fall silent: connections stay open and nothing passes, as with a laptop that slept or a router that forgot.
import { connect, createServer, type Socket } from "node:net";

export interface QuietProxy extends AsyncDisposable {
  /** `http://127.0.0.1:port`, to be used instead of the address behind it. */
  readonly url: string;
  /** Connections that are open now pass nothing any more, and nobody is told. New ones work. */
  silence(): void;
  /** New connections are refused, or taken again. */
  refuse(refused: boolean): void;
}

export async function quietProxy(target: string): Promise<QuietProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let refused = false;
  const server = createServer((near) => {
    if (refused) return void near.destroy();
    const far = connect(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  return {
    url,
    silence() {
      for (const socket of open) {
        socket.unpipe();
        socket.pause();
      }
    },
    refuse(next) {
      refused = next;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}
