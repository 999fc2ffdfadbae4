// What a connection is made with, and what its owner can do beyond what workers see.
import type { Logger } from "../log-port.ts";
import type { Clock, Dialer, Random } from "../ports.ts";
import type { Ambient } from "./ambient.ts";
import type { Iii } from "./iii.ts";
import type { ReconnectOptions } from "./link.ts";
import type { SpanSink } from "./spans.ts";

export interface ConnectOptions {
  dialer: Dialer;
  clock?: Clock;
  random?: Random;
  log?: Logger;
  name?: string;
  description?: string;
  metadata?: unknown;
  /** Announce this connection under `name` as soon as it is open. A worker announces when it is ready instead. */
  announce?: boolean;
  reconnect?: Partial<ReconnectOptions>;
  /** How a nested call finds the call it is made for. Default: by async context, where the runtime has one. */
  ambient?: Ambient;
  /** Records a span for each call served. */
  spans?: SpanSink | undefined;
}

/** What a connection tells the engine about itself. */
export interface Announcement {
  name: string;
  description?: string;
  version?: string;
  runtime?: string;
  os?: string;
  pid?: number;
  metadata?: unknown;
}

/** The connection as its owner sees it. */
export interface Client extends Iii {
  /** Announces the connection, now and after each reconnect, each time after everything that is registered. Resolves when the engine knows. */
  announce(info: Announcement): Promise<void>;
  /** Stops taking calls and waits, at most `ms`, for the handlers that run. Calls can still be made. */
  drain(ms?: number): Promise<void>;
}

/** What a connection says about itself when it has a name and is not a worker's. */
export function announcementOf(options: ConnectOptions, name: string): Announcement {
  const { description, metadata } = options;
  return { name, ...(description === undefined ? {} : { description }), ...(metadata === undefined ? {} : { metadata }) };
}
