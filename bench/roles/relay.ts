// The bar: a bare `ws` relay between one caller and one worker. Forwards frames as they come and looks into none.
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { play } from "../support/processes.ts";

const peers: { caller?: WebSocket; worker?: WebSocket } = {};
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
server.on("connection", (socket, request) => {
  const [own, other] = request.url === "/worker" ? (["worker", "caller"] as const) : (["caller", "worker"] as const);
  peers[own] = socket;
  socket.on("message", (data, binary) => peers[other]?.send(data, { binary }));
});
server.on("listening", () => play({ url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}` }));
