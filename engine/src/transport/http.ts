// One HTTP listener: guards every request and every upgrade, hands requests to a front and upgrades to the bus. Knows no route.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { BusError } from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";
import type { BodyStream, HttpFront, HttpRequest, HttpResponse } from "../builtin/http/port.ts";
import { preflight, readable } from "./cors.ts";
import { type Refusal, refuse } from "./guard.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** What people read when the port is taken: what it is for, and what to set to move it. */
  readonly purpose: { readonly name: string; readonly env: string; readonly key: string };
  readonly allowedOrigins: readonly string[];
  /** Names that a Host header may have beside this machine's own. */
  readonly allowedHosts?: readonly string[];
  /** Whom a request's bearer token proves it to be from; undefined for one that is none of ours. */
  readonly principalOf?: (token: string) => Principal | undefined;
  readonly front: HttpFront;
  /** Takes over a guarded upgrade. The socket has no delay set. */
  readonly onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

export interface Listener {
  readonly port: number;
  /** Takes no new connections and ends those that are left. */
  close(): Promise<void>;
}

function joinedHeaders(request: IncomingMessage): Record<string, string> {
  const pairs = Object.entries(request.headers).map(
    ([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")] as const,
  );
  return Object.fromEntries(pairs);
}

async function readBody(request: IncomingMessage, limit: number): Promise<Uint8Array> {
  const tooLarge = () => new BusError("payload_too_large", `the request body is larger than ${limit} bytes`, { details: { limit } });
  if (Number(request.headers["content-length"] ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/** Leaving the loop early does not end the connection: the answer still has to go out on it. What is left is read and dropped. */
async function* pieces(request: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    yield* request.iterator({ destroyOnReturn: false });
  } finally {
    request.resume();
  }
}

function toRequest(request: IncomingMessage, response: ServerResponse, principal: Principal | undefined): HttpRequest {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const gone = new AbortController();
  response.on("close", () => {
    if (!response.writableFinished) gone.abort();
  });
  return {
    method: request.method ?? "GET",
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? "" : url.slice(mark + 1),
    headers: joinedHeaders(request),
    readBody: (limit) => readBody(request, limit),
    body: () => pieces(request),
    principal,
    signal: gone.signal,
  };
}

/** How long, and how much, is read of a body that nobody wants, so that its sender gets to read the answer. */
const LINGER_MS = 1_000;
const LINGER_BYTES = 67_108_864;

/** Drops what the client still sends, within bounds: closed under a sender, a connection takes the answer on it along. */
function linger(request: IncomingMessage, done: () => void): void {
  let left = LINGER_BYTES;
  const over = (): void => {
    clearTimeout(timer);
    request.off("data", drop).off("end", over).off("close", over);
    done();
  };
  const drop = (chunk: Buffer): void => {
    left -= chunk.byteLength;
    if (left < 0) over();
  };
  const timer = setTimeout(over, LINGER_MS);
  request.on("data", drop).once("end", over).once("close", over);
}

function write(request: IncomingMessage, response: ServerResponse, answer: HttpResponse): void {
  if (response.destroyed) return;
  for (const [name, value] of answer.headers) response.appendHeader(name, value);
  // A body that was not read to its end would be taken for the next request.
  if (!request.complete && typeof answer.body !== "function") response.setHeader("connection", "close");
  if (typeof answer.body === "function") {
    stream(response, answer.status, answer.body);
    return;
  }
  const body = typeof answer.body === "string" ? Buffer.from(answer.body) : (answer.body ?? new Uint8Array());
  const isEmpty = answer.status === 204 || answer.status === 304;
  if (!isEmpty) response.setHeader("content-length", body.byteLength);
  response.writeHead(answer.status);
  finish(request, response, isEmpty || request.method === "HEAD" ? undefined : body);
}

function finish(request: IncomingMessage, response: ServerResponse, body: Uint8Array | undefined): void {
  if (request.complete) {
    response.end(body);
    return;
  }
  if (body === undefined) response.flushHeaders();
  else response.write(body);
  linger(request, () => response.end());
}

function stream(response: ServerResponse, status: number, body: BodyStream): void {
  response.writeHead(status);
  const { drain } = body({
    write: (piece) => void response.write(piece),
    get buffered() {
      return response.writableLength;
    },
    end: () => void response.end(),
    abort: () => void response.destroy(),
  });
  response.on("drain", drain);
}

function refusal(refused: Refusal): HttpResponse {
  const body = JSON.stringify({ error: { code: "FORBIDDEN", message: refused.reason } });
  return { status: refused.status, headers: [["content-type", "application/json"]], body };
}

function refuseUpgrade(socket: Duplex, refused: Refusal): void {
  const body = JSON.stringify({ error: { code: "FORBIDDEN", message: refused.reason } });
  const title = refused.status === 400 ? "Bad Request" : "Forbidden";
  const head = `HTTP/1.1 ${refused.status} ${title}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`;
  socket.end(`${head}\r\n\r\n${body}`);
}

function listenError(options: ListenOptions, error: NodeJS.ErrnoException): BusError {
  const { name, env, key } = options.purpose;
  if (error.code !== "EADDRINUSE")
    return new BusError("io_error", `${name}: cannot listen on ${options.host}:${options.port}: ${error.message}`, { cause: error });
  const message = `${name}: port ${options.port} is in use. Another engine may be running; else set ${env} or ${key} in config.yaml to a free port`;
  return new BusError("port_in_use", message, { details: { port: options.port, env, key }, cause: error });
}

/** A bearer that is none of ours belongs to whoever serves the route: it proves nothing here. */
function bearer(authorization: string | undefined, { principalOf }: ListenOptions): Principal | undefined {
  const token = /^Bearer ([A-Za-z0-9_-]+)$/i.exec(authorization ?? "")?.[1];
  return token === undefined ? undefined : principalOf?.(token);
}

async function answer(request: IncomingMessage, response: ServerResponse, options: ListenOptions): Promise<HttpResponse> {
  const { method = "GET", headers } = request;
  const refused = refuse({ method, headers, upgrade: false }, options.allowedOrigins, options.allowedHosts);
  if (refused !== undefined) return refusal(refused);
  return (
    preflight(method, headers, options.allowedOrigins) ??
    options.front(toRequest(request, response, bearer(headers.authorization, options)))
  );
}

function wire(server: Server, options: ListenOptions): Set<Duplex> {
  const upgraded = new Set<Duplex>();
  server.on("request", (request, response) => {
    const { headers } = request;
    answer(request, response, options)
      .then((value) => write(request, response, readable(value, headers, options.allowedOrigins)))
      .catch(() => response.destroy());
  });
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    const asked = { method: request.method ?? "GET", headers: request.headers, upgrade: true };
    const refused = refuse(asked, options.allowedOrigins, options.allowedHosts);
    if (refused !== undefined) return refuseUpgrade(socket, refused);
    if ("setNoDelay" in socket && typeof socket.setNoDelay === "function") socket.setNoDelay(true);
    upgraded.add(socket);
    socket.on("close", () => upgraded.delete(socket));
    options.onUpgrade(request, socket, head);
  });
  return upgraded;
}

/** Opens a listener. @throws BusError `port_in_use`, saying which and how to change it. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const server = createServer({ noDelay: true, headersTimeout: 10_000, requestTimeout: 300_000, maxHeaderSize: 32_768 });
  const upgraded = wire(server, options);
  await new Promise<void>((done, fail) => {
    server.once("error", (error) => fail(listenError(options, error)));
    server.listen({ host: options.host, port: options.port, exclusive: true }, done);
  });
  server.on("error", () => server.closeAllConnections());
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      server.closeIdleConnections();
      for (const socket of upgraded) socket.destroy();
      server.closeAllConnections();
      await closed;
    },
  };
}
