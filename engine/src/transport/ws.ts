// The bus over WebSocket: takes upgrades from an HTTP server and joins `ws` sockets to the engine.
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Wire, WireHandlers } from "@iii/sdk";
import { FrameWriter } from "@iii/sdk/socket";
import { type RawData, WebSocket, WebSocketServer } from "ws";
import type { Engine } from "../engine.ts";

export interface UpgradeOptions {
  /** What stands before the bus paths on this listener. The engine itself also strips one `/ws`. */
  readonly prefix?: string;
  /** Default: what the engine's config says. */
  readonly max_frame_bytes?: number;
}

const REASONS: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  503: "Service Unavailable",
};

function refuse(socket: Duplex, status: number): void {
  socket.end(`HTTP/1.1 ${status} ${REASONS[status] ?? "Error"}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function toBytes(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

const NO_CODE = 1005;

/** Codes that may stand in a closing frame. */
function sendable(code: number | undefined): number | undefined {
  return code === undefined || code === NO_CODE || code === 1006 ? undefined : code;
}

function wireOf(socket: Duplex, ws: BusSocket): Wire {
  const writer = new FrameWriter(socket, () => ws.readyState === ws.OPEN);
  return {
    send(data, binary = false) {
      if (typeof data === "string") writer.text(data);
      else writer.bytes(data, binary);
    },
    sendParts: (before, body, after) => writer.text(before, body, after),
    pause: () => ws.pause(),
    resume: () => ws.resume(),
    close(code, reason) {
      writer.flush();
      ws.closing = true;
      ws.close(sendable(code), reason);
    },
    terminate: () => ws.terminate(),
    ping() {
      if (ws.readyState === ws.OPEN) ws.ping();
    },
    get buffered() {
      return ws.bufferedAmount + writer.waiting;
    },
  };
}

/**
 * Says when the peer's Close frame has been read, which `ws` answers by calling `close` itself: a peer that has said goodbye is gone,
 * however long its TCP connection takes to end.
 */
class BusSocket extends WebSocket {
  /** The engine closes by itself: what is read after that is the peer's answer. */
  closing = false;

  override close(code?: number, data?: string | Buffer): void {
    super.close(code, data);
    if (!this.closing) this.emit("goodbye", code ?? NO_CODE, data ?? "");
    this.closing = true;
  }
}

function attach(socket: Duplex, ws: WebSocket, handlers: WireHandlers): void {
  let ended = false;
  const end = (code: number, reason: string): void => {
    if (ended) return;
    ended = true;
    handlers.close(code, reason);
  };

  ws.on("message", (data, binary) => {
    if (!ended) handlers.message(toBytes(data), binary);
  });
  ws.on("ping", () => handlers.alive?.());
  ws.on("pong", () => handlers.alive?.());
  ws.on("goodbye", (code: number, reason: string | Buffer) => end(code, reason.toString()));
  ws.on("close", (code, reason) => end(code, reason.toString()));
  // The close event follows; an error alone must not end the process.
  ws.on("error", () => {});
  socket.on("drain", () => handlers.drain?.());
}

/** A path that breaks its service's check is a bad request of one socket, and no reason to end the process. */
function statusOf(engine: Engine, path: string): number {
  try {
    return engine.check(path);
  } catch {
    return 400;
  }
}

/** Handles the upgrades of one listener whose Host and Origin have been checked. */
export function upgradeHandler(
  engine: Engine,
  options: UpgradeOptions = {},
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const server = new WebSocketServer({
    noServer: true,
    WebSocket: BusSocket,
    perMessageDeflate: false,
    maxPayload: options.max_frame_bytes ?? engine.max_frame_bytes,
    maxFragments: 1_024,
    clientTracking: false,
  });
  const prefix = options.prefix ?? "";
  return (request, socket, head) => {
    const url = request.url ?? "/";
    const path = prefix !== "" && url.startsWith(prefix) ? url.slice(prefix.length) || "/" : url;
    const status = prefix !== "" && !url.startsWith(prefix) ? 404 : statusOf(engine, path);
    if (status !== 101) {
      refuse(socket, status);
      return;
    }
    server.handleUpgrade(request, socket, head, (ws) => {
      const { origin } = request.headers;
      const handlers = engine.accept(path, wireOf(socket, ws), { origin, remote: request.socket.remoteAddress });
      if (handlers === undefined) ws.close(1011);
      else attach(socket, ws, handlers);
    });
  };
}

export interface AttachOptions extends UpgradeOptions {
  /** Whether a connection from this Origin (absent: no browser) for this Host may open. */
  allowOrigin(origin: string | undefined, host: string | undefined): boolean;
}

/** Serves the bus on an HTTP server. */
export function attachBus(server: Server, engine: Engine, options: AttachOptions): void {
  const upgrade = upgradeHandler(engine, options);
  server.on("upgrade", (request, socket, head) => {
    const { origin, host } = request.headers;
    if (options.allowOrigin(origin, host)) upgrade(request, socket, head);
    else refuse(socket, 403);
  });
}
