// Sockets that say what no client would: frames as they are, upgrades with any header. For tests of what a hostile peer can do.
import { type ClientRequest, request } from "node:http";
import { createConnection } from "node:net";
import WebSocket, { type RawData } from "ws";
import { until } from "./stack.ts";

export interface RawAnswer {
  type: string;
  invocation_id?: string;
  result?: unknown;
  error?: { code: string; message: string; details?: unknown };
}

export interface RawSocket extends Disposable {
  readonly ws: WebSocket;
  /** Every message that has come. */
  readonly seen: RawAnswer[];
  send(frame: string | Uint8Array, options?: { binary?: boolean }): void;
  /** Sends a call and waits for its answer. */
  call(function_id: string, data: unknown, more?: Record<string, unknown>): Promise<RawAnswer>;
  /** The next frame of a type, or the one that has come. */
  next(type: string): Promise<RawAnswer>;
  /** The answer to an invocation id. */
  answer(invocation_id: string): Promise<RawAnswer>;
  /** The code with which the engine closes it. */
  closed(): Promise<number>;
}

let calls = 0;

/** Opens a socket on `url`; with `origin`, the engine takes it for a browser. */
export async function rawSocket(url: string, options: { origin?: string } = {}): Promise<RawSocket> {
  const ws = new WebSocket(url, { perMessageDeflate: false, ...options });
  const seen: RawAnswer[] = [];
  ws.on("message", (data: RawData) => seen.push(JSON.parse(String(data)) as RawAnswer));
  const closed = new Promise<number>((done) => ws.on("close", done));
  await new Promise((done, fail) => {
    ws.once("open", done);
    ws.once("error", fail);
  });
  ws.on("error", () => undefined);
  const answer = (id: string) =>
    until(`the answer to ${id}`, () => seen.find((frame) => frame.type === "invocationresult" && frame.invocation_id === id), 10_000);
  return {
    ws,
    seen,
    send: (frame, { binary = false } = {}) => ws.send(frame, { binary }),
    answer,
    next: (type) => until(`a frame of type ${type}`, () => seen.find((frame) => frame.type === type), 10_000),
    call(function_id, data, more = {}) {
      calls += 1;
      const invocation_id = `raw-${calls}`;
      ws.send(JSON.stringify({ type: "invokefunction", invocation_id, function_id, data, ...more }));
      return answer(invocation_id);
    },
    closed: () => closed,
    [Symbol.dispose]: () => ws.terminate(),
  };
}

function upgradeRequest(url: string, headers: Record<string, string>, more = ""): ClientRequest {
  const { hostname, port, pathname, search } = new URL(url);
  const path = `${more === "" ? pathname : pathname.replace(/\/$/, "")}${more}${search}`;
  const usual = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  return request({ hostname, port, path, headers: { ...usual, ...headers } });
}

/** Asks for an upgrade with these headers beside the usual ones; status 101 or the refusal. `path` is added as it is. */
export function upgrade(url: string, headers: Record<string, string>, path = ""): Promise<{ status: number; body: string }> {
  return new Promise((done, fail) => {
    const sent = upgradeRequest(url, headers, path);
    sent.on("upgrade", (response, socket) => {
      socket.destroy();
      done({ status: response.statusCode ?? 0, body: "" });
    });
    sent.on("response", (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on("end", () => done({ status: response.statusCode ?? 0, body }));
    });
    sent.on("error", fail);
    sent.end();
  });
}

/** Sends bytes as they are on an open WebSocket connection; the code of the closing frame that comes back. */
export function rawBytes(url: string, bytes: Uint8Array): Promise<number> {
  return new Promise((done, fail) => {
    const sent = upgradeRequest(url, {});
    sent.on("upgrade", (_response, socket, head) => {
      let got = head;
      socket.on("data", (chunk: Buffer) => {
        got = Buffer.concat([got, chunk]);
      });
      socket.on("error", () => undefined);
      socket.on("close", () => done(closingCode(got)));
      socket.write(bytes);
    });
    sent.on("error", fail);
    sent.end();
  });
}

/** The code in the last frame, which is the server's (so not masked) closing frame; 0 when there is none. */
function closingCode(got: Buffer): number {
  let at = 0;
  while (at + 1 < got.length) {
    const short = (got[at + 1] ?? 0) & 0x7f;
    const length = short === 126 ? got.readUInt16BE(at + 2) : short;
    const start = at + (short === 126 ? 4 : 2);
    if (got[at] === 0x88) return got.readUInt16BE(start);
    at = start + length;
  }
  return 0;
}

/** Sends text as it is to a listener, and gives all that comes back until it closes. */
export function rawRequest(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((done) => {
    let got = "";
    const socket = createConnection(Number(port), hostname, () => socket.write(text));
    socket.on("data", (chunk) => {
      got += chunk.toString();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => done(got));
    socket.setTimeout(10_000, () => socket.destroy());
  });
}
