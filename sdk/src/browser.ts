// The client for a web page. Must not reach anything of Node: a test walks its imports.
import { type Dialer, shownAddress, type Wire, type WireHandlers } from "./ports.ts";

export type * from "./client/channel-port.ts";
export { connect } from "./client/connect.ts";
export * from "./client/iii.ts";
export * from "./client/options.ts";
export * from "./errors.ts";
export * from "./ports.ts";

/** The parts of a page's WebSocket that are used here; the SDK is compiled without the DOM's types. */
interface PageSocket {
  binaryType: string;
  readonly bufferedAmount: number;
  readonly readyState: number;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
}

const OPEN = 1;

/** Dials the engine at `url`, e.g. `ws://127.0.0.1:3111/ws`, with the page's own WebSocket. */
export function browserDialer(url: string): Dialer {
  const base = url.replace(/\/+$/, "");
  const Page = Reflect.get(globalThis, "WebSocket") as new (url: string) => PageSocket;
  return { address: shownAddress(base), dial: (path, handlers) => wireOf(new Page(path === "/" ? base : `${base}${path}`), handlers) };
}

function wireOf(socket: PageSocket, handlers: WireHandlers): Wire {
  const encoder = new TextEncoder();
  // A page cannot hold a socket back, so frames are kept here while the reader is slow.
  let paused = false;
  let ended = false;
  const kept: (() => void)[] = [];
  const deliver = (event: () => void): void => void (paused ? kept.push(event) : event());
  const end = (code: number, reason: string): void => {
    if (ended) return;
    ended = true;
    deliver(() => handlers.close(code, reason));
  };
  socket.binaryType = "arraybuffer";
  socket.onopen = () => handlers.open?.();
  socket.onmessage = ({ data }) => {
    const binary = typeof data !== "string";
    const bytes = binary ? new Uint8Array(data as ArrayBuffer) : encoder.encode(data);
    deliver(() => handlers.message(bytes, binary));
  };
  socket.onclose = ({ code, reason }) => end(code, reason);
  return {
    send(data) {
      if (socket.readyState === OPEN) socket.send(data);
    },
    pause() {
      paused = true;
    },
    resume() {
      paused = false;
      while (!paused && kept.length > 0) kept.shift()?.();
    },
    close: (code = 1000, reason = "") => socket.close(code, reason),
    terminate() {
      socket.close();
      end(1006, "terminated");
    },
    get buffered() {
      return socket.bufferedAmount;
    },
  };
}
