// The Node transport against a bare WebSocket server.
import { once } from "node:events";
import { wsDialer } from "@iii/sdk/run";
import { expect, test } from "vitest";
import { WebSocketServer } from "ws";

test("a frame as large as the engine takes, with what the engine adds to it, does not cost the receiver its connection", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const got = Promise.withResolvers<number>();
  const wire = wsDialer(`ws://127.0.0.1:${port}`).dial("/", {
    message: (data) => got.resolve(data.byteLength),
    close: (code) => got.resolve(-code),
  });
  const [socket] = (await once(server, "connection")) as [import("ws").WebSocket];
  const bytes = 64 * 1_048_576 + 400;
  socket.send(Buffer.alloc(bytes, 0x20));
  expect(await got.promise).toBe(bytes);
  wire.terminate();
  server.close();
});
